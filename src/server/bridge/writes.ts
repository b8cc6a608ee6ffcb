/** Checks of the options of etcd v2 writes, for a bridge. */
import { etcdError } from '../../v2/error-codes.ts';
import type { DeleteOptions, SetOptions } from '../../v2/keys-api.ts';
import { isConditional } from '../../v2/requests.ts';
import type { Exact } from '../../v2/wire.ts';

/** Maximum TTL in seconds. Below etcd's maximum of 9,000,000,000, because a bridge to both stores adds some seconds on v3. */
const LONGEST_TTL = 8_000_000_000;

/** Maximum number of attempts of a write, if the entry changes each time between the read and the write, or a lease ends. */
export const MOST_TRIES = 3;

export const actionOf = (options: Exact<SetOptions>): string => {
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
