import type { Event, Span } from './history.ts';
import { type Hold, holdsIn } from './holds.ts';

/** When a contender was stopped: it could not know then that its hold was over. */
export interface Stop extends Span {
  readonly who: string;
}

export interface Verdict {
  /** Pairs of holds that ran side by side though nothing excuses it. */
  readonly overlaps: readonly (readonly [Hold, Hold])[];
  /** Holds that began later than another one, with a token that is not greater. */
  readonly disorder: readonly (readonly [Hold, Hold])[];
  /** Contenders that asked last and were never answered. */
  readonly waiting: readonly string[];
}

/** Judges what the contenders of one lock have told. */
export function judge(history: readonly Event[], stops: readonly Stop[] = []): Verdict {
  // What was over when it became known was never a hold.
  const holds = holdsIn(history).filter(({ from, to }) => from < to);
  const overlaps: [Hold, Hold][] = [];
  const disorder: [Hold, Hold][] = [];
  for (const [i, first] of holds.entries()) {
    for (const second of holds.slice(i + 1)) {
      if ((first.shared && second.shared) || cameLate(second, first, stops)) continue;
      if (second.from < first.to && !wasStopped(first.who, second.from, stops)) overlaps.push([first, second]);
      if (second.token <= first.token) disorder.push([first, second]);
    }
  }
  return { overlaps, disorder, waiting: stillWaiting(history) };
}

/** Milliseconds until a contender that runs again must have noticed. */
const NOTICE = 1000;

/** It was stopped then, or had just begun to run again. */
const wasStopped = (who: string, at: number, stops: readonly Stop[]): boolean =>
  stops.some((stop) => stop.who === who && stop.from <= at && at <= stop.to + NOTICE);

/** It had its turn before the other one, but was stopped before it could tell. */
const cameLate = (hold: Hold, other: Hold, stops: readonly Stop[]): boolean =>
  hold.token < other.token && wasStopped(hold.who, hold.from, stops);

function stillWaiting(history: readonly Event[]): string[] {
  const last = new Map<string, Event>();
  for (const event of history.toSorted((a, b) => a.at - b.at)) last.set(event.who, event);
  return [...last.values()].filter(({ kind }) => kind === 'asks').map(({ who }) => who);
}
