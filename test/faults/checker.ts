import type { Event, Span } from './history.ts';
import { type Hold, holdsIn } from './holds.ts';

/** A period in which a contender was stopped, so that it could not notice the end of its hold. */
export interface Stop extends Span {
  readonly who: string;
}

export interface Verdict {
  /** Pairs of holds that overlap without an excuse. */
  readonly overlaps: readonly (readonly [Hold, Hold])[];
  /** Pairs of holds of which the later one has no greater token. */
  readonly disorder: readonly (readonly [Hold, Hold])[];
  /** Contenders whose last request has no outcome. */
  readonly waiting: readonly string[];
}

/** Checks the events that the contenders of one lock have reported. */
export function judge(history: readonly Event[], stops: readonly Stop[] = []): Verdict {
  // A hold that was over before its contender learned of it does not count.
  const holds = holdsIn(history).filter(({ from, to }) => from < to);
  const overlaps: [Hold, Hold][] = [];
  const disorder: [Hold, Hold][] = [];
  for (const [i, first] of holds.entries()) {
    const [earliest, ...others] = heldWith(first, holds, stops);
    if (first.limit !== undefined && earliest && others.length + 1 >= first.limit) overlaps.push([earliest, first]);
    for (const second of holds.slice(i + 1)) {
      if (mayBeTogether(first, second) || cameLate(second, first, stops)) continue;
      if (second.from < first.to && !wasStopped(first.who, second.from, stops)) overlaps.push([first, second]);
      if (second.token <= first.token) disorder.push([first, second]);
    }
  }
  return { overlaps, disorder, waiting: stillWaiting(history) };
}

const mayBeTogether = (one: Hold, other: Hold): boolean =>
  (one.shared && other.shared) || (one.limit !== undefined && other.limit !== undefined);

/** Returns the other holds with a limit that lasted when this one began, unless a contender could not notice their end. */
const heldWith = (hold: Hold, holds: readonly Hold[], stops: readonly Stop[]): readonly Hold[] =>
  wasStopped(hold.who, hold.from, stops)
    ? []
    : holds.filter(
        (other) =>
          other !== hold &&
          other.limit !== undefined &&
          other.from <= hold.from &&
          hold.from < other.to &&
          !wasStopped(other.who, hold.from, stops),
      );

/** Milliseconds within which a resumed contender must notice that its hold is over. */
const NOTICE = 1000;

/** Returns whether the contender was stopped at that time, or had only just been resumed. */
const wasStopped = (who: string, at: number, stops: readonly Stop[]): boolean =>
  stops.some((stop) => stop.who === who && stop.from <= at && at <= stop.to + NOTICE);

/** Returns whether `hold` came first in the queue, but its contender was stopped before it could report the hold. */
const cameLate = (hold: Hold, other: Hold, stops: readonly Stop[]): boolean =>
  hold.token < other.token && wasStopped(hold.who, hold.from, stops);

function stillWaiting(history: readonly Event[]): string[] {
  const last = new Map<string, Event>();
  for (const event of history.toSorted((a, b) => a.at - b.at)) last.set(event.who, event);
  return [...last.values()].filter(({ kind }) => kind === 'asks').map(({ who }) => who);
}
