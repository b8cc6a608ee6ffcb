/** What writes of etcd v2 ask for, and when they are refused. */
import { etcdError } from '../../v2/error-codes.ts';
import type { DeleteOptions, SetOptions } from '../../v2/keys-api.ts';
import { isConditional } from '../../v2/requests.ts';
import type { Exact } from '../../v2/wire.ts';

/** In seconds. etcd's own maximum for a lease is 9,000,000,000; a lease must be able to outlive another one. */
const LONGEST_TTL = 8_000_000_000;

/** How often a renewal is tried while the entry changes in between. */
export const MOST_TRIES = 3;

export const actionOf = (options: Exact<SetOptions>): string => {
  if (isConditional(options)) return 'compareAndSwap';
  return options.prevExist ? 'update' : 'set';
};

/** @throws {EtcdValueError} if etcd v3 has no such TTL */
export function secondsOf(ttl: number | bigint | null | undefined): number | null {
  if (ttl === undefined || ttl === null) return null;
  if (ttl >= 1 && ttl <= LONGEST_TTL) return Number(ttl);
  throw etcdError(202, `on etcd v3 a TTL is from 1 to ${LONGEST_TTL} seconds, not ${ttl}`, 0);
}

/**
 * Checks the conditions of a write.
 * @param index of the store
 * @throws {EtcdCompareFailed}
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
