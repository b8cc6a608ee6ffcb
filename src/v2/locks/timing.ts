/** How long the requests of a lock on etcd v2 take at most, in seconds: the only place that says so. */
import { LONGEST_WAIT } from '../requests.ts';

type Seconds = number;

/** Why the queue is read (again). */
export type Cause =
  /** The first read, or an event on the entry ahead. */
  | 'event'
  /** Nothing was heard of the entry ahead for so long that the member may be the reason. */
  | 'silence'
  /** The wait failed. */
  | 'trouble';

/** Members asked for the queue within one poll cap while each is silent: one of three that works is among them. */
const MEMBERS_ASKED = 3;

/**
 * The longest poll, and the time within which a dead connection is noticed and the queue read again by another member.
 * @param ttl of the own entry; null: it never expires
 */
export const pollCap = (ttl: number | null): Seconds => Math.min((ttl ?? Number.POSITIVE_INFINITY) / 3, LONGEST_WAIT);

/**
 * Until a further member is asked for the queue. Shorter after silence: the reads must fit into the rest of the poll cap. Not
 * shorter than needed: renewals hedged to other members come on top, until the rate limit knows of the outage.
 */
export const hedgeReadAfter = (ttl: number | null, cause: Cause): Seconds =>
  cause === 'silence' ? Math.min(pollCap(ttl) / 8, 0.625) : Math.min(pollCap(ttl) / MEMBERS_ASKED, 1);

/** How long a waiter waits for an event before it reads the queue again. */
export const longestSilence = (ttl: number | null): Seconds =>
  pollCap(ttl) - MEMBERS_ASKED * hedgeReadAfter(ttl, 'silence');

/** After this many failed attempts a further one gets no more time: the client's own limit is shorter by then. */
const MOST_DOUBLINGS = 3;

/**
 * For one member to append an entry, or to renew one while this process waits for it. A member that loses its leader may
 * answer after 7 s or never, and nobody can acquire the lock while its first entry is ours and we do not know. With a TTL
 * above 6, two silent members take less than the poll cap. Doubles with each failed attempt.
 */
export const enterTimeout = (ttl: number | null, failed: number): Seconds =>
  Math.min(Math.max((ttl ?? Number.POSITIVE_INFINITY) / 9, 1), 2) * 2 ** Math.min(failed, MOST_DOUBLINGS);

/** Until a renewal is sent to a further member. */
export const hedgeRenewalAfter = (ttl: number): Seconds => ttl / 12;

/** Until a removal is sent to a further member, while others may wait for it. */
export const HEDGE_REMOVAL_AFTER: Seconds = 0.5;

/** For an event of the past, which a member has at once unless it lags behind. */
export const HISTORY_TIMEOUT: Seconds = 1;

/**
 * How long the key of an unanswered append is looked for in the background, before one last read. Independent of its TTL,
 * which counts from the moment a member carries the append out: one that was stopped may do so late.
 */
export const LOOK_FOR_APPEND: Seconds = 120;

/** Between two attempts to remove a key in the background, at most. Others wait for the removal once an outage is over. */
export const REMOVE_EVERY: Seconds = 2;

/** Between two background reads for a key that may not exist, at most. */
export const LOOK_EVERY: Seconds = 4;
