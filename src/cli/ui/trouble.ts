import type { LockWithTtl } from './shapes.ts';

/** How urgent a lock is, the most urgent first: somebody waits for a holder that never expires, somebody waits, nobody waits. */
function urgency({ waiters, ttl }: LockWithTtl): number {
  if (waiters === 0) return 2;
  return ttl?.left === null ? 0 : 1;
}

/** Orders locks by trouble; those of the same urgency by the longest wait, then by their name. */
export function byTrouble(one: LockWithTtl, other: LockWithTtl): number {
  const difference = urgency(one) - urgency(other) || (one.waitingSince ?? 0) - (other.waitingSince ?? 0);
  if (difference !== 0) return difference;
  return one.name < other.name ? -1 : one.name > other.name ? 1 : one.id - other.id;
}
