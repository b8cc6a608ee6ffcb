import { etcdError } from '../../v2/error-codes.ts';
import { isBelow } from '../../v2/paths.ts';
import { hasBytes } from '../../v2/wire.ts';

/** What a key of etcd v2 stands for on etcd v3. */
export type BridgedKey =
  /** All queues. */
  | { readonly kind: 'prefix'; readonly path: string }
  /** The queue of one lock. */
  | { readonly kind: 'queue'; readonly path: string }
  /** The entry of a queue that was created at this revision. */
  | { readonly kind: 'entry'; readonly path: string; readonly rank: bigint };

export type EntryKey = Extract<BridgedKey, { kind: 'entry' }>;

/** The name of an entry: its create revision, as wide as etcd v2 names a key in order. */
const ENTRY = /^(.+)\/(\d{20})$/;

/** A greater number is part of a lock's name. */
const LAST_REVISION = 2n ** 63n - 1n;

/** Returns the name that etcd v2 would give an entry with this create revision. */
export const nameOf = (rank: bigint): string => String(rank).padStart(20, '0');

/**
 * Returns what a key stands for.
 * @throws {EtcdRootReadOnly} for a key that is not part of a lock; the message names the bridge
 */
export function bridged(key: string, lockPrefix: string): BridgedKey {
  if (hasBytes(key)) throw refused(`${key} is not UTF-8`);
  if (key === lockPrefix) return { kind: 'prefix', path: key };
  if (!isBelow(key, lockPrefix)) throw refused(`${key} is not below ${lockPrefix}`);
  const [, path = '', digits = ''] = ENTRY.exec(key) ?? [];
  const rank = BigInt(digits);
  const isEntry = isBelow(path, lockPrefix) && rank <= LAST_REVISION;
  return isEntry ? { kind: 'entry', path, rank } : { kind: 'queue', path: key };
}

/** Returns the error for a request that no lock needs. Code 107 is the only one of etcd that forbids a write for good. */
export const refused = (why: string): Error => etcdError(107, `${why}: the bridge to etcd v3 serves only locks`, 0);
