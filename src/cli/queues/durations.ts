/** How long entries are in their queues, for people. */
import { madeAt } from '../../recipe/entries/uuid.ts';
import type { ParsedEntry } from '../../recipe/survey.ts';

/** Returns for how many seconds an entry is in its queue; undefined if that is not known. */
export type Durations = (entry: ParsedEntry) => number | undefined;

/** Seconds by which the clock of a client may be ahead. Beyond that, its time is not believed. */
const MOST_AHEAD = 60;

/** Returns the durations until a time, in milliseconds since the epoch. */
export const queuedUntil =
  (at: number): Durations =>
  ({ uuid }) => {
    const since = madeAt(uuid);
    const seconds = since && (at - since.getTime()) / 1000;
    return seconds === undefined || seconds < -MOST_AHEAD ? undefined : Math.max(0, seconds);
  };

/** Returns the longest duration that is known; undefined if none is. */
export const longest = (durations: readonly (number | undefined)[]): number | undefined =>
  durations.reduce((most, each) => (most === undefined || (each ?? 0) > most ? (each ?? most) : most), undefined);

/** Returns the local time as HH:MM:SS. */
export const timeOfDay = (time: Date): string =>
  [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':');

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
] as const;

/** Returns a duration with its two largest units, such as "3m5s" or "2d". */
export function durationText(seconds: number): string {
  const whole = Math.floor(seconds);
  const first = Math.max(
    0,
    UNITS.findIndex(([, size]) => whole >= size),
  );
  let left = whole;
  let text = '';
  for (const [unit, size] of whole === 0 ? UNITS.slice(-1) : UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0 || text === '') text += `${count}${unit}`;
  }
  return text;
}
