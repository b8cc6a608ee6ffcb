import type { Event } from './history.ts';
import { type Hold, holdsIn } from './holds.ts';

/** When a contender was stopped, or cut off past its deadline: it cannot have known then that its hold was over. */
export interface Excuse {
  readonly who: string;
  readonly from: number;
  readonly to: number;
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
export function judge(history: readonly Event[], excuses: readonly Excuse[] = []): Verdict {
  const holds = holdsIn(history);
  const overlaps: [Hold, Hold][] = [];
  const disorder: [Hold, Hold][] = [];
  for (const [i, first] of holds.entries()) {
    for (const second of holds.slice(i + 1)) {
      const together = first.shared && second.shared;
      if (!together && second.from < first.to && !isExcused(first, second, excuses)) overlaps.push([first, second]);
      if (!together && second.token <= first.token) disorder.push([first, second]);
    }
  }
  return { overlaps, disorder, waiting: stillWaiting(history) };
}

/** The earlier holder was stopped when the later one came, so that it could not tell. */
const isExcused = (first: Hold, second: Hold, excuses: readonly Excuse[]): boolean =>
  excuses.some(({ who, from, to }) => who === first.who && from <= second.from && second.from <= to);

function stillWaiting(history: readonly Event[]): string[] {
  const last = new Map<string, Event>();
  for (const event of history.toSorted((a, b) => a.at - b.at)) last.set(event.who, event);
  return [...last.values()].filter(({ kind }) => kind === 'asks').map(({ who }) => who);
}
