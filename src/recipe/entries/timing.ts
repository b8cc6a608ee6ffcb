/** Time limits for the requests of a lock that are the same on both stores, in seconds. */

export type Seconds = number;

/** Maximum of {@link pollCap}. */
const LONGEST_WAIT: Seconds = 20;

/** Number of members that a read tries within one poll cap: in a cluster of three, a single working member is among them. */
const MEMBERS_ASKED = 3;

/**
 * Maximum time of one wait of a waiter. Within that time, a dead connection is noticed and the queue is read from another member.
 * @param ttl TTL of the own entry; null: never expires
 */
export const pollCap = (ttl: number | null): Seconds => Math.min((ttl ?? Number.POSITIVE_INFINITY) / 3, LONGEST_WAIT);

/**
 * Time until a read of the queue also asks another member. Shorter after silence, because the reads must fit into the rest of the
 * poll cap. No shorter than that, because hedged renewals add more requests until the rate limit detects an outage.
 */
export const hedgeReadAfter = (ttl: number | null, afterSilence: boolean): Seconds =>
  afterSilence ? Math.min(pollCap(ttl) / 8, 0.625) : Math.min(pollCap(ttl) / MEMBERS_ASKED, 1);

/** Maximum time that a waiter waits for an event before it reads the queue again: a silent member may be down. */
export const longestSilence = (ttl: number | null): Seconds => pollCap(ttl) - MEMBERS_ASKED * hedgeReadAfter(ttl, true);

/** Time until a removal is also sent to another member. Short, because waiters may wait for the removal. */
export const HEDGE_REMOVAL_AFTER: Seconds = 0.5;

/**
 * How long background reads search for the key of an unanswered append. Independent of the TTL, which on etcd v2 starts only when a
 * member carries out the append: a member that was stopped may do so late.
 */
export const SEARCH_APPEND_FOR: Seconds = 120;

/**
 * Maximum time between two background attempts to remove a key or revoke a lease. Waiters need the removal soon after the end of an
 * outage.
 */
export const REMOVE_EVERY: Seconds = 2;
