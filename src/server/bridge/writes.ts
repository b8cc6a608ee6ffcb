/** Conditional writes of clients of etcd v2, for a bridge. */
import { etcdError } from '../../v2/error-codes.ts';
import type { Change, DeleteOptions, SetOptions } from '../../v2/keys-api.ts';
import { isConditional } from '../../v2/requests.ts';
import type { Exact } from '../../v2/wire.ts';
import { refused } from './target.ts';

/** Maximum TTL in seconds. Below etcd's maximum of 9,000,000,000, because a bridge to both stores adds some seconds on v3. */
const LONGEST_TTL = 8_000_000_000;

/** Maximum number of attempts of a write, if the entry changes each time between the read and the write, or a lease ends. */
export const MOST_TRIES = 3;

const actionOf = (options: Exact<SetOptions>): string => {
  if (isConditional(options)) return 'compareAndSwap';
  return options.prevExist ? 'update' : 'set';
};

/** etcd's error number for a TTL that is not allowed. */
export const TTL_REFUSED = 202;

/**
 * Returns a TTL in seconds; null if there is none.
 * @throws {EtcdValueError} if the bridge does not allow the TTL
 */
export function secondsOf(ttl: number | bigint | null | undefined): number | null {
  if (ttl === undefined || ttl === null) return null;
  if (ttl >= 1 && ttl <= LONGEST_TTL) return Number(ttl);
  throw etcdError(TTL_REFUSED, `TTL must be from 1 to ${LONGEST_TTL} seconds on a bridge, got ${ttl}`, 0);
}

/**
 * Checks the conditions of a write.
 * @param index the store's index, for the error
 * @throws {EtcdCompareFailed} if a condition is not met
 */
export function compare(
  own: { readonly value: string; readonly modified: bigint },
  { prevValue, prevIndex }: Exact<DeleteOptions>,
  index: number,
): void {
  if (prevValue !== undefined && prevValue !== own.value) throw etcdError(101, `[${prevValue} != ${own.value}]`, index);
  if (prevIndex !== undefined && BigInt(prevIndex) !== own.modified)
    throw etcdError(101, `[${prevIndex} != ${own.modified}]`, index);
}

/** An entry as it was read for a write. */
interface ReadEntry<T> {
  readonly own: T;
  readonly value: string;
  readonly modified: bigint;
  /** The store's index at the read. */
  readonly index: number;
}

interface Renewal<T> {
  readonly find: () => Promise<ReadEntry<T>>;
  /** Resolves to undefined if the entry has changed since it was read. */
  readonly write: (own: T, ttl: number | null) => Promise<Omit<Change, 'action'> | undefined>;
}

/** Renews an entry if the conditions are met. Reads and tries again if the entry changes in between. */
export async function renewGuarded<T>(
  key: string,
  value: string,
  options: Exact<SetOptions>,
  { find, write }: Renewal<T>,
): Promise<Change> {
  const ttl = secondsOf(options.ttl);
  let last: bigint | undefined;
  for (let tries = 1; ; tries += 1) {
    const { own, index, ...entry } = await find();
    compare(entry, options, index);
    if (!options.refresh && value !== entry.value) throw refused(`the value of ${key} cannot be changed`);
    const renewed = await write(own, ttl);
    if (renewed) return { ...renewed, action: actionOf(options) };
    // A former leader does not know the lease yet.
    if (entry.modified === last) throw etcdError(300, `the lease of ${key} was not found`, index);
    last = entry.modified;
    if (tries === MOST_TRIES) throw changedEachTime(key, index);
  }
}

export const changedEachTime = (key: string, index: number): Error =>
  etcdError(101, `${key} was changed during each of ${MOST_TRIES} attempts`, index);
