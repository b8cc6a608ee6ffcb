/** What the answers to several requests have: keys, and the revision and the cluster of the answer. */
import type { Entry } from '../../recipe/store.ts';
import { decodeText, type Fields, type Header } from '../gateway/messages.ts';

/** An entry on etcd v3. Another client's key and value need not be UTF-8: each such byte is a lone surrogate, see {@link decodeText}. */
export interface V3Entry extends Entry {
  /** Id of its lease; undefined if it has none. */
  readonly lease: string | undefined;
  /** The revision of its last write. */
  readonly modified: bigint;
}

/** The own entry, and the key created right before it. */
export interface Neighbours extends Header {
  /** undefined if the key does not exist. */
  readonly own: V3Entry | undefined;
  /** The newest key older than the own one. It may belong to another lock, whose name begins with this lock's name and a "/". */
  readonly before: V3Entry | undefined;
}

/** Decodes a key that exists: a deleted one has no create revision. */
export function decodeEntry(fields: Fields): V3Entry {
  const lease = fields.integer('lease');
  return {
    key: decodeText(fields.raw('key')),
    value: decodeText(fields.raw('value')),
    rank: fields.positive('create_revision'),
    ttl: undefined,
    lease: lease === 0n ? undefined : String(lease),
    modified: fields.positive('mod_revision'),
  };
}

/** Returns the entries in the answer to a range, in its order. */
export const decodeRange = (fields: Fields): V3Entry[] => fields.list('kvs').map(decodeEntry);
