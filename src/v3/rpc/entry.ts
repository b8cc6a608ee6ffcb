/** What the answers to several requests have: keys, and the revision and the cluster of the answer. */
import type { Entry } from '../../recipe/store.ts';
import type { GatewayAnswer } from '../gateway/gateway.ts';
import { decodeText, type Fields } from '../gateway/messages.ts';

/** An entry on etcd v3. Another client's key and value need not be UTF-8: each such byte is a lone surrogate, see {@link decodeText}. */
export interface V3Entry extends Entry {
  /** Id of its lease; undefined if it has none. */
  readonly lease: string | undefined;
  /** The revision of its last write. */
  readonly modified: bigint;
}

/** The cluster that an answer is from, its revision, and the raft term of the member that has answered. */
export interface Stamp {
  readonly clusterId: string | undefined;
  /**
   * Revision of the store at the time of the answer. If the answer shows that the lock is held, the revision is greater than that
   * of every earlier hold that this one excludes.
   */
  readonly revision: bigint;
  /** Grows with each election. */
  readonly raftTerm: string | undefined;
}

/** The own entry, and the key created right before it. */
export interface Neighbours extends Stamp {
  /** undefined if the key does not exist. */
  readonly own: V3Entry | undefined;
  /** The newest key older than the own one. It may belong to another lock, whose name begins with this lock's name and a "/". */
  readonly before: V3Entry | undefined;
}

export const stampOf = ({ header: { clusterId, revision, raftTerm } }: GatewayAnswer): Stamp => ({
  clusterId,
  revision,
  raftTerm,
});

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
