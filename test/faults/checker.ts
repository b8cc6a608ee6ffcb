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
  const holds = holdsIn(history);
  const overlaps: [Hold, Hold][] = [];
  const disorder: [Hold, Hold][] = [];
  for (const [i, first] of holds.entries()) {
    for (const second of holds.slice(i + 1)) {
      const together = first.shared && second.shared;
      if (!together && second.from < first.to && !isExcused(first, second, stops)) overlaps.push([first, second]);
      if (!together && second.token <= first.token) disorder.push([first, second]);
    }
  }
  return { overlaps, disorder, waiting: stillWaiting(history) };
}

/** Milliseconds until a contender that runs again must have noticed. */
const NOTICE = 1000;

/** The earlier holder was stopped when the later one came, or had just begun to run again. */
const isExcused = (first: Hold, second: Hold, stops: readonly Stop[]): boolean =>
  stops.some(({ who, from, to }) => who === first.who && from <= second.from && second.from <= to + NOTICE);

function stillWaiting(history: readonly Event[]): string[] {
  const last = new Map<string, Event>();
  for (const event of history.toSorted((a, b) => a.at - b.at)) last.set(event.who, event);
  return [...last.values()].filter(({ kind }) => kind === 'asks').map(({ who }) => who);
}
