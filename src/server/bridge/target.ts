import { errorText } from '../../base/error-text.ts';
import { etcdError } from '../../v2/error-codes.ts';
import { checkLockName, isBelow, isLockName } from '../../v2/paths.ts';
import { hasBytes } from '../../v2/wire.ts';

/** What a key of etcd v2 stands for on etcd v3. */
export type BridgedKey =
  /** All queues. */
  | { readonly kind: 'prefix'; readonly path: string }
  /** The queue of one lock. */
  | { readonly kind: 'queue'; readonly path: string }
  /** One entry of a queue: `rank` is the number in its key. */
  | { readonly kind: 'entry'; readonly path: string; readonly rank: bigint };

export type EntryKey = Extract<BridgedKey, { kind: 'entry' }>;

/** The key of an entry. Its last part is a number of 20 digits, as in the in-order keys of etcd v2. */
const ENTRY = /^(.+)\/(\d{20})$/s;

/** Greatest number of an entry. A greater number, or 0, is part of a lock's name. */
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
  const isEntry = isBelow(path, lockPrefix) && rank > 0n && rank <= LAST_REVISION;
  const at: BridgedKey = isEntry ? { kind: 'entry', path, rank } : { kind: 'queue', path: key };
  checkName(at.path.slice(lockPrefix.length + 1));
  return at;
}

/** @throws {EtcdRootReadOnly} for a lock name that this package's own clients refuse, such as one that is too long */
function checkName(name: string): void {
  try {
    checkLockName(name);
  } catch (error) {
    throw refused(errorText(error));
  }
}

/**
 * Whether a bridge serves the locks in this directory. Other clients of etcd v3 may use longer names: listings leave out their
 * entries, because each part of a name is a directory, and the size of a listing would grow with the square of their number.
 * @param path the lock prefix, or below it
 */
export const isServed = (path: string, lockPrefix: string): boolean =>
  path === lockPrefix || isLockName(path.slice(lockPrefix.length + 1));

/** etcd's only error number for a write that is never permitted. */
export const REFUSED = 107;

/**
 * Maximum bytes of a value. On etcd v3, the value may also be a part of the key, and an answer of the gateway has at most 2 MiB, so a
 * queue with larger entries might be unreadable.
 */
const LONGEST_VALUE = 16_384;

/** Returns the error for a request that no lock needs. */
export const refused = (why: string): Error => etcdError(REFUSED, `${why}: a bridge serves only locks`, 0);

/** @throws {EtcdException} if a value is too long for an entry */
export function checkLength(value: string): void {
  const length = Buffer.byteLength(value);
  if (length > LONGEST_VALUE) throw refused(`a value of ${length} bytes, more than the maximum of ${LONGEST_VALUE}`);
}
