import type { Stop } from './checker.ts';
import type { Fault, FaultKind, Span } from './history.ts';

/** Milliseconds that a waiter has without a fault, or after a fault that ends its socket. */
export const AT_ONCE = 1000;
/** Milliseconds after the cluster can write again. */
const AFTER_OUTAGE = 5000;

/** A reason for a longer wait: it counts if it began before the wait was due and lasted into the wait. */
export interface Allowance extends Span {
  readonly why: string;
  /** When a wait that began at `since` is due. */
  readonly due: (since: number) => number;
}

/**
 * How a waiter notices the fault: its socket ends (`loud`), it gets no sign (`silent`), or answers are late (`slow`). A fault of
 * one contender concerns no other (`none`).
 */
const SIGNS: Readonly<Record<FaultKind, 'loud' | 'silent' | 'slow' | 'none'>> = {
  'member killed': 'loud',
  'leader killed': 'loud',
  'connections cut': 'loud',
  'connections refused': 'loud',
  'member paused': 'silent',
  'leader paused': 'silent',
  'quorum paused': 'silent',
  'member isolated': 'silent',
  'leader isolated': 'silent',
  'requests lost': 'silent',
  'answers lost': 'silent',
  'both ways lost': 'silent',
  'answer swallowed': 'silent',
  'network slow': 'slow',
  'contender stopped': 'none',
  'contender killed': 'none',
  'holder stopped': 'none',
  'holder killed': 'none',
  // Only foreign contenders use bridges.
  'bridge killed': 'none',
  'bridge stopped': 'none',
};

/** Maximum seconds of one poll: a connection that died silently is noticed within that time. */
const pollCap = (ttl: number): number => Math.min(ttl / 3, 20);

/** Returns what a fault allows any waiter with this TTL in seconds: the member that a waiter is connected to is not known. */
export function forFault({ kind, targets, from, to }: Fault, ttl: number): Allowance[] {
  const why = `${kind} (${targets.join(', ')})`;
  const silent = pollCap(ttl) * 1000;
  switch (SIGNS[kind]) {
    case 'loud':
      return [{ why, from, to: Number.POSITIVE_INFINITY, due: () => from + AT_ONCE }];
    case 'silent':
      // A poll that began just before the end of the fault gets no event until its cap.
      return [{ why, from, to: to + silent, due: (since) => Math.max(since, from) + silent }];
    case 'slow':
      return [{ why, from, to, due: (since) => Math.max(since, from) + 2 * AT_ONCE }];
    default:
      return [];
  }
}

/** Returns what an outage allows: there was no leader, or clients reached no member with a quorum. */
export const forOutage = ({ from, to }: Span): Allowance => ({
  why: `no write for ${Math.round(to - from)} ms`,
  from,
  to: to + AFTER_OUTAGE,
  due: () => to + AFTER_OUTAGE,
});

/**
 * Returns what a waiter is allowed whose predecessor was stopped or killed, on etcd v2 and with a limit: the predecessor does not write its
 * entry again when it holds the lock, so the waiter gets no event.
 */
export const forStopAhead = ({ who, from, to }: Stop, ttl: number): Allowance => ({
  why: `${who}, before it in the queue, was stopped or killed`,
  from,
  to,
  due: (since) => Math.max(since, from) + pollCap(ttl) * 1000,
});

/** Returns what a stop of the waiter itself allows: its connections may have died during the stop. */
export const forOwnStop = ({ who, from, to }: Stop, ttl: number): Allowance => ({
  why: `${who} was stopped`,
  from,
  to: Number.POSITIVE_INFINITY,
  due: () => to + pollCap(ttl) * 1000 + AT_ONCE,
});
