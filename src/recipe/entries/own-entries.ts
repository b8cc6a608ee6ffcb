import { now } from '../../base/time.ts';
import type { Ticket } from '../store.ts';

type Id = Pick<Ticket, 'path' | 'value'>;

const OWN = Symbol.for('etcd-v2-lock.own');
const registry = globalThis as { [OWN]?: Map<string, number> };
registry[OWN] ??= new Map();

/**
 * The entries that this process may have in a queue, each with the time on the monotonic clock until which it may be there.
 * Includes entries that were given up but could not be removed yet. Used for messages only: evictions use `alive` in leftovers.ts.
 * Shared by all copies of this package in the process.
 */
const own = registry[OWN];

/** When there are this many entries, those that have expired are deleted from the map. */
let sweepAt = 1000;

const idOf = ({ path, value }: Id): string => `${path} ${value}`;

/**
 * Registers an entry as one of this process. Call this before a write that creates the entry, and after each write that extends it.
 * @param ttl seconds; null: the entry never expires
 */
export function registerOwn(entry: Id, ttl: number | null): void {
  // Twice the TTL, because the store may carry out the write later.
  own.set(idOf(entry), ttl === null ? Number.POSITIVE_INFINITY : now() + 2000 * ttl);
  if (own.size < sweepAt) return;
  for (const [id, until] of own) if (until <= now()) own.delete(id);
  sweepAt = Math.max(1000, 2 * own.size);
}

/** Undoes {@link registerOwn}. Call this when the entry is certainly gone. */
export const unregisterOwn = (entry: Id): boolean => own.delete(idOf(entry));

/** Whether an entry of the queue at `path` with this value is one of this process. */
export const isOwn = (entry: Id): boolean => (own.get(idOf(entry)) ?? 0) > now();
