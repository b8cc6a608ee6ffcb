/** Time limits for the requests of a lock on etcd v3, in seconds. Those that v2 has, too, are in recipe/entries/timing.ts. */
import type { Seconds } from '../../recipe/entries/timing.ts';

/** Tries to enter the queue get longer at most this often. More would exceed the default `readTimeout`. */
const MAX_DOUBLINGS = 3;

/**
 * Time limits of one try to append an entry, or to create its lease: until another member is asked as well, and for all of them. While an
 * append is not answered, the own entry may be first and block all others, and this process does not know of it. Tries last 2, 3, 5, then
 * 9 s, for stores that write slowly. Even then they ask again soon: a member that has lost its leader answers after 7 s, or never.
 */
export const enterLimits = (failed: number): { readonly attemptTimeout: Seconds; readonly timeout: Seconds } => ({
  attemptTimeout: failed === 0 ? 1 : 2,
  timeout: 1 + 2 ** Math.min(failed, MAX_DOUBLINGS),
});

/** Maximum time of one read of the holder, for messages. Also the time that each member has for it. */
export const HOLDER_WITHIN: Seconds = 1;

/**
 * Time until a renewal is also sent to another member. A follower that does not know yet that its leader hangs answers only after
 * 7 s.
 */
export const hedgeRenewalAfter = (ttl: number): Seconds => Math.min(ttl / 12, 1);

/**
 * Maximum time that a lease is kept without a use, and between two comparisons of the keys of a lease with those in use. A proxy may have
 * carried out an append once more, after the removal of its entry: that entry blocks its lock for about this time, or for the TTL.
 */
export const STRAY_FOR: Seconds = 60;

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
