/** All time limits for the requests of a lock on etcd v2, in seconds. */
import { LONGEST_WAIT } from '../requests.ts';

type Seconds = number;

/** Why the queue is read (again). */
export type Cause =
  /** The first read, or an event on the entry ahead. */
  | 'event'
  /** No event on the entry ahead for so long that the member may be down or stale. */
  | 'silence'
  /** The wait failed, the last read was stale, or the caller asks for the latest state. */
  | 'failure';

/** Number of members that a read tries within one poll cap: in a cluster of three, a single working member is among them. */
const MEMBERS_ASKED = 3;

/**
 * Maximum duration of one poll. Within that time, a dead connection is noticed and the queue is read from another member.
 * @param ttl TTL of the own entry; null: never expires
 */
export const pollCap = (ttl: number | null): Seconds => Math.min((ttl ?? Number.POSITIVE_INFINITY) / 3, LONGEST_WAIT);

/**
 * Time until a read of the queue also asks another member. Shorter after silence, because the reads must fit into the rest of the
 * poll cap. No shorter than that, because hedged renewals add more requests until the rate limit detects an outage.
 */
export const hedgeReadAfter = (ttl: number | null, cause: Cause): Seconds =>
  cause === 'silence' ? Math.min(pollCap(ttl) / 8, 0.625) : Math.min(pollCap(ttl) / MEMBERS_ASKED, 1);

/** Maximum time that a waiter waits for an event before it reads the queue again. */
export const longestSilence = (ttl: number | null): Seconds =>
  pollCap(ttl) - MEMBERS_ASKED * hedgeReadAfter(ttl, 'silence');

/** {@link enterTimeout} doubles at most this many times. More would exceed the default `readTimeout`. */
const MAX_DOUBLINGS = 3;

/**
 * Timeout for one member to append an entry, or to renew one on entering the queue. A member that loses its leader may
 * answer after 7 s or never. Until then, the own entry may be first and block all others, while this process does not know of it.
 * With a TTL above 6, twice this is less than the poll cap. The timeout doubles with each failed attempt.
 */
export const enterTimeout = (ttl: number | null, failed: number): Seconds =>
  Math.min(Math.max((ttl ?? Number.POSITIVE_INFINITY) / 9, 1), 2) * 2 ** Math.min(failed, MAX_DOUBLINGS);

/** Time until a renewal is also sent to another member. */
export const hedgeRenewalAfter = (ttl: number): Seconds => ttl / 12;

/** Time until a removal is also sent to another member. Short, because waiters may wait for the removal. */
export const HEDGE_REMOVAL_AFTER: Seconds = 0.5;

/**
 * Timeout for writing an entry again when it holds the lock. Short, because the hold begins after that. Without this write, the waiter
 * behind the entry reads the queue after {@link longestSilence}.
 */
export const ANNOUNCE_WITHIN: Seconds = 1;

/** Timeout for a past event. A member reports such an event at once, unless the member lags behind. */
export const HISTORY_TIMEOUT: Seconds = 1;

/**
 * How long background reads search for the key of an unanswered append. One more read follows after that. Independent of the TTL,
 * which starts only when a member carries out the append: a member that was stopped may do so late.
 */
export const SEARCH_APPEND_FOR: Seconds = 120;

/** Maximum time between two background attempts to remove a key. Waiters need the removal soon after the end of an outage. */
export const REMOVE_EVERY: Seconds = 2;

/** Maximum time between two background reads that search for a key of an append whose outcome is unknown. */
export const READ_EVERY: Seconds = 4;
