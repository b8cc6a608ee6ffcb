import { Cron } from 'croner';
import { show } from '../../checks.ts';
import { printable } from '../../printable.ts';

/** When the ticks of a job are due: the same on every host, whatever its clock shows. Times are milliseconds since the epoch. */
export interface Schedule {
  /** Returns the last tick at or before this time. */
  present(time: number): number;
  /** Returns the first tick after this time. */
  next(time: number): number;
  /** Returns the number of ticks after one time and before another, at most {@link MOST_COUNTED}. */
  between(from: number, to: number): number;
}

/** Counting the ticks of a cron expression takes about a second for so many, if a job with rare ticks got frequent ones. */
const MOST_COUNTED = 10_000;

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const DURATION = /^([1-9]\d*)([smhd])$/;
const LONGEST = 366 * 86_400;

/** Five fields, or a nickname such as `@hourly`. */
const CRON = /^(?:\S+(?: +\S+){4}|@[a-z]+)$/;

/** In a cron expression it means the time at which the schedule was created, which differs between hosts. */
const START_TIME = '?';

/**
 * Returns the schedule for the option `every`: a duration such as `15m`, or a cron expression.
 * @param timeZone of the cron expression; default UTC
 * @throws {TypeError | RangeError} for text that is neither, a schedule without ticks or an unknown time zone; the message shows it
 */
export function scheduleOf(every: unknown, timeZone: unknown): Schedule {
  if (typeof every !== 'string') throw new TypeError(`every must be a string such as "15m", got ${show(every)}`);
  const text = every.trim();
  const [, count, unit = ''] = DURATION.exec(text) ?? [];
  if (count === undefined) return cronSchedule(text, every, timeZone);
  if (timeZone !== undefined)
    throw new TypeError(`timeZone is for a cron expression, got ${show(timeZone)} with every ${show(every)}`);
  const seconds = Number(count) * (UNITS[unit] ?? 0);
  if (seconds > LONGEST) throw new RangeError(`every must be at most 366d, got ${show(every)}`);
  return intervals(seconds * 1000);
}

/** Ticks at the multiples of a duration since 1970-01-01T00:00:00Z. */
const intervals = (length: number): Schedule => ({
  present: (time) => Math.floor(time / length) * length,
  next: (time) => (Math.floor(time / length) + 1) * length,
  between: (from, to) => Math.min(Math.max(0, Math.ceil(to / length) - Math.floor(from / length) - 1), MOST_COUNTED),
});

function cronSchedule(text: string, every: string, timeZone: unknown): Schedule {
  if (!CRON.test(text) || text.includes(START_TIME))
    throw new RangeError(
      `every must be a duration such as "30s", "15m", "1h" or "1d", or a cron expression of five fields, got ${show(every)}`,
    );
  const cron = parsed(text, every, checkTimeZone(timeZone));
  const next = (time: number): number => {
    const tick = cron.nextRun(new Date(time));
    if (tick === null) throw new RangeError(`every must have a next tick, got ${show(every)}`);
    return tick.getTime();
  };
  const present = (time: number): number => {
    // Without the tick at the reference itself.
    const [tick] = cron.previousRuns(1, new Date(time + 1));
    if (tick === undefined) throw new RangeError(`every must have a tick before now, got ${show(every)}`);
    return tick.getTime();
  };
  const between = (from: number, to: number): number => {
    let count = 0;
    for (let tick = next(from); tick < to && count < MOST_COUNTED; tick = next(tick)) count += 1;
    return count;
  };
  next(present(Date.now()));
  return { present, next, between };
}

function checkTimeZone(timeZone: unknown): string {
  if (timeZone === undefined) return 'UTC';
  if (typeof timeZone !== 'string') throw new TypeError(`timeZone must be a string, got ${show(timeZone)}`);
  try {
    new Intl.DateTimeFormat('en', { timeZone });
  } catch {
    throw new RangeError(`timeZone must be an IANA name such as "Europe/Berlin", got ${show(timeZone)}`);
  }
  return timeZone;
}

function parsed(text: string, every: string, timezone: string): Cron {
  try {
    return new Cron(text, { timezone, mode: '5-part' });
  } catch (error) {
    const why = (error as Error).message.replace(/^CronPattern: /, '');
    throw new RangeError(`every must be a valid cron expression, got ${show(every)}: ${printable(why)}`);
  }
}
