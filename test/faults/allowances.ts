import type { Stop } from './checker.ts';
import type { Fault, FaultKind, Span } from './history.ts';

/** Milliseconds a waiter has where nothing, or what the socket shows, stands in the way. */
export const AT_ONCE = 1000;
/** After the cluster can write again. */
const AFTER_OUTAGE = 5000;

/** Why a wait may take longer: it began before the wait was due, and its effects lasted into it. */
export interface Allowance extends Span {
  readonly why: string;
  /** When a wait that began then is due. */
  readonly due: (since: number) => number;
}

/** How a waiter comes to know: a socket that ends, nothing at all, or later than usual. Of contenders it is the fault of some only. */
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
};

/** Seconds a poll lasts at most: what ends the wait on a connection that died silently. */
const pollCap = (ttl: number): number => Math.min(ttl / 3, 20);

/** What a fault allows a waiter with this TTL, whichever member it is connected to: that is not known from outside. */
export function forFault({ kind, targets, from, to }: Fault, ttl: number): Allowance[] {
  const why = `${kind} (${targets.join(', ')})`;
  const silent = pollCap(ttl) * 1000;
  switch (SIGNS[kind]) {
    case 'loud':
      return [{ why, from, to: Number.POSITIVE_INFINITY, due: () => from + AT_ONCE }];
    case 'silent':
      // A poll that began just before the end hears nothing for all its time.
      return [{ why, from, to: to + silent, due: (since) => Math.max(since, from) + silent }];
    case 'slow':
      return [{ why, from, to, due: (since) => Math.max(since, from) + 2 * AT_ONCE }];
    default:
      return [];
  }
}

/** The cluster could not write: there was no leader, or no member with a quorum was reached. */
export const forOutage = ({ from, to }: Span): Allowance => ({
  why: `no write for ${Math.round(to - from)} ms`,
  from,
  to: to + AFTER_OUTAGE,
  due: () => to + AFTER_OUTAGE,
});

/** The waiter itself was stopped: its connections may have died meanwhile. */
export const forOwnStop = ({ who, from, to }: Stop, ttl: number): Allowance => ({
  why: `${who} was stopped`,
  from,
  to: Number.POSITIVE_INFINITY,
  due: () => to + pollCap(ttl) * 1000 + AT_ONCE,
});
