import type { Claim } from './claim.ts';
import { differencesOf } from './claim.ts';
import type { Stored } from './stored.ts';

/** Returns an entry of the queue that keeps another one from holding the lock. Written apart from the rule of the package, as a check of it. */
export function whatIsBefore(own: Stored, queue: readonly Stored[]): Stored | undefined {
  // python-etcd may create a key again that has expired, in the middle of the queue.
  const before = queue.filter(({ rank, created, value }) => rank < own.rank && created === rank && value !== own.value);
  const limit = limitOf(own);
  if (own.value.startsWith('shared:')) return before.find(({ value }) => !value.startsWith('shared:'));
  if (limit === undefined || before.length >= limit) return before[0];
  return before.find((entry) => limitOf(entry) === undefined);
}

function limitOf({ value }: Stored): number | undefined {
  const [, limit] = /^limit:(\d+):/.exec(value) ?? [];
  return limit === undefined ? undefined : Number(limit);
}

/** Whether the locks of one call were taken in the order of their names. */
export function areInOrder(claims: readonly Claim[]): boolean {
  const byName = claims.toSorted((one, other) => (one.lock < other.lock ? -1 : 1));
  return byName.every(({ tokens }, i) => {
    const next = byName[i + 1];
    return !next || differencesOf(tokens, next.tokens).every((difference) => difference < 0n);
  });
}
