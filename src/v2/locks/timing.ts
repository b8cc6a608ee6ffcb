/** Time limits for the requests of a lock on etcd v2, in seconds. Those that v3 has, too, are in recipe/entries/timing.ts. */
import type { Seconds } from '../../recipe/entries/timing.ts';

/** Why the queue is read (again). */
export type Cause =
  /** The first read, or an event on the entry ahead. */
  | 'event'
  /** No event on the entry ahead for so long that the member may be down or stale. */
  | 'silence'
  /** The wait failed, the last read was stale, or the caller asks for the latest state. */
  | 'failure';

/** A timeout doubles at most this many times. More would exceed the default `readTimeout`. */
const MAX_DOUBLINGS = 3;

/**
 * Timeout for one member to append an entry, or to renew one on entering the queue. A member that loses its leader may
 * answer after 7 s or never. Until then, the own entry may be first and block all others, while this process does not know of it.
 * With a TTL above 6, twice this is less than the poll cap. The timeout doubles with each failed attempt, for stores that
 * write slowly.
 */
export const enterTimeout = (ttl: number | null, failed: number): Seconds =>
  Math.min(Math.max((ttl ?? Number.POSITIVE_INFINITY) / 9, 1), 2) * 2 ** Math.min(failed, MAX_DOUBLINGS);

/** Time until a renewal is also sent to another member. */
export const hedgeRenewalAfter = (ttl: number): Seconds => ttl / 12;

/**
 * Timeout for writing an entry again when it holds the lock. Short, because the hold begins after that. Without this write, the waiter
 * behind the entry reads the queue after `longestSilence()`.
 */
export const ANNOUNCE_WITHIN: Seconds = 1;

/** Timeout for a past event. A member reports such an event at once, unless the member lags behind. */
export const HISTORY_TIMEOUT: Seconds = 1;

/** Maximum time between two background reads that search for a key of an append whose outcome is unknown. */
export const READ_EVERY: Seconds = 4;
