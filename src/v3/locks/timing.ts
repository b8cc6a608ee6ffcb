/** All time limits for the requests of a lock on etcd v3, in seconds. */

type Seconds = number;

/** Maximum of {@link pollCap}. */
const LONGEST_WAIT: Seconds = 20;

/** Number of members that a read tries within one poll cap: in a cluster of three, a single working member is among them. */
const MEMBERS_ASKED = 3;

/** Maximum time within which a dead connection is noticed, and the queue is read from another member. */
const pollCap = (ttl: number | null): Seconds => Math.min((ttl ?? Number.POSITIVE_INFINITY) / 3, LONGEST_WAIT);

/**
 * Time until a read of the queue also asks another member. Shorter after silence, because the reads must fit into the rest of the
 * poll cap.
 */
export const hedgeReadAfter = (ttl: number | null, afterSilence: boolean): Seconds =>
  afterSilence ? Math.min(pollCap(ttl) / 8, 0.625) : Math.min(pollCap(ttl) / MEMBERS_ASKED, 1);

/** Maximum time that a waiter waits for an event before it reads the queue again: a silent member may be down. */
export const longestSilence = (ttl: number | null): Seconds => pollCap(ttl) - MEMBERS_ASKED * hedgeReadAfter(ttl, true);

/** Maximum time of one read of the holder, for messages. Also the time that each member has for it. */
export const HOLDER_WITHIN: Seconds = 1;

/** {@link enterTimeout} doubles at most this many times. More would exceed the default `readTimeout`. */
const MAX_DOUBLINGS = 3;

/**
 * Timeout for one member to append an entry, or to create its lease. While an append is not answered, the own entry may be first and
 * block all others, and this process does not know of it. The timeout doubles with each failed attempt, for stores that write slowly.
 */
export const enterTimeout = (failed: number): Seconds => 2 ** Math.min(failed, MAX_DOUBLINGS);

/**
 * Time until a renewal is also sent to another member. A follower that does not know yet that its leader hangs answers only after
 * 7 s.
 */
export const hedgeRenewalAfter = (ttl: number): Seconds => Math.min(ttl / 12, 1);

/** Time until a removal is also sent to another member. Short, because waiters may wait for the removal. */
export const HEDGE_REMOVAL_AFTER: Seconds = 0.5;

/** How long background reads search for the key of an unanswered append, unless its lease ends earlier. */
export const SEARCH_APPEND_FOR: Seconds = 120;

/** Maximum time between two background attempts to remove a key or revoke a lease. */
export const REMOVE_EVERY: Seconds = 2;

/**
 * Time before a held entry is watched, because a watch costs as many requests as a short hold itself. Also the minimum time between
 * two changes of the watched entries. So each hold is watched after at most twice this time, if a stream has room.
 */
export const WATCH_HOLDS_AFTER: Seconds = 0.25;

/** Maximum time for the watches of one stream to begin. */
export const WATCHES_BEGIN_WITHIN: Seconds = 2;

/** Maximum time that a stream of watches may be silent before its entries are read: its member may be down. */
export const WATCH_HOLDS_FOR: Seconds = 20;

/**
 * Maximum time that the error of a loss may wait for a read of the lease. Short, because the holder is notified after it. Only entries
 * with an identity need the read.
 */
export const EXPLAIN_LOSS_WITHIN: Seconds = 0.25;
