import { Cron } from 'croner';
import { show } from '../../base/checks.ts';
import { printable } from '../../base/printable.ts';

/** When the ticks of a job are due: the same on every host, whatever its clock shows. Times are milliseconds since the epoch. */
export interface Schedule {
  /** Returns the last tick at or before this time. */
  current(time: number): number;
  /** Returns the first tick after this time. */
  next(time: number): number;
  /** Returns the number of ticks after one time and before another, at most {@link MOST_COUNTED}. */
  between(from: number, to: number): number;
}

/** Counting this many cron ticks takes about a second. A job can miss so many if its rare ticks became frequent. */
const MOST_COUNTED = 10_000;

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const INTERVAL = /^([1-9]\d*)([smhd])$/;
const LONGEST = 366 * 86_400;

/** Whether a schedule is an interval, for which a time zone means nothing. */
export const isInterval = (every: string): boolean => INTERVAL.test(every.trim());

/** Five fields, or a nickname such as `@hourly`. */
const CRON = /^(?:\S+(?: +\S+){4}|@[a-z]+)$/;

/** Names of the two options in messages: the command line uses other names. */
export interface OptionNamesOfSchedule {
  readonly every: string;
  readonly timeZone: string;
}

const OPTIONS: OptionNamesOfSchedule = { every: 'every', timeZone: 'timeZone' };

/** In a cron expression, "?" means the time at which the schedule was created, which differs between hosts. */
const START_TIME = '?';

/**
 * Returns the schedule for the option `every`: an interval such as `15m`, or a cron expression.
 * @param timeZone of the cron expression; default UTC
 * @param names the names of the two options in messages
 * @throws {TypeError | RangeError} for text that is neither, a schedule without ticks or an unknown time zone; the message shows it
 */
export function scheduleOf(every: unknown, timeZone: unknown, names: OptionNamesOfSchedule = OPTIONS): Schedule {
  if (typeof every !== 'string')
    throw new TypeError(`${names.every} must be a string such as "15m", got ${show(every)}`);
  const text = every.trim();
  const [, count, unit = ''] = INTERVAL.exec(text) ?? [];
  if (count === undefined) return cronSchedule(text, every, timeZone, names);
  if (timeZone !== undefined)
    throw new TypeError(
      `${names.timeZone} is for a cron expression, got ${show(timeZone)} with ${names.every} ${show(every)}`,
    );
  const seconds = Number(count) * (UNITS[unit] ?? 0);
  if (seconds > LONGEST) throw new RangeError(`${names.every} must be at most 366d, got ${show(every)}`);
  return intervals(seconds * 1000);
}

/** Ticks at the multiples of an interval since 1970-01-01T00:00:00Z. */
const intervals = (length: number): Schedule => ({
  current: (time) => Math.floor(time / length) * length,
  next: (time) => (Math.floor(time / length) + 1) * length,
  between: (from, to) => Math.min(Math.max(0, Math.ceil(to / length) - Math.floor(from / length) - 1), MOST_COUNTED),
});

function cronSchedule(text: string, every: string, timeZone: unknown, names: OptionNamesOfSchedule): Schedule {
  if (!CRON.test(text) || text.includes(START_TIME))
    throw new RangeError(
      `${names.every} must be an interval such as "30s", "15m", "1h" or "1d", a cron expression of five fields without "?", ` +
        `or a nickname such as "@daily", got ${show(every)}`,
    );
  const cron = parsed(text, every, checkTimeZone(timeZone, names), names);
  const next = (time: number): number => {
    const tick = cron.nextRun(new Date(time));
    if (tick === null) throw new RangeError(`${names.every} must have a next tick, got ${show(every)}`);
    return tick.getTime();
  };
  const current = (time: number): number => {
    // `previousRuns` leaves out the reference itself, so add a millisecond.
    const [tick] = cron.previousRuns(1, new Date(time + 1));
    if (tick === undefined) throw new RangeError(`${names.every} must have a tick before now, got ${show(every)}`);
    return tick.getTime();
  };
  const between = (from: number, to: number): number => {
    let count = 0;
    for (let tick = next(from); tick < to && count < MOST_COUNTED; tick = next(tick)) count += 1;
    return count;
  };
  next(current(Date.now()));
  return { current, next, between };
}

function checkTimeZone(timeZone: unknown, names: OptionNamesOfSchedule): string {
  if (timeZone === undefined) return 'UTC';
  if (typeof timeZone !== 'string') throw new TypeError(`${names.timeZone} must be a string, got ${show(timeZone)}`);
  try {
    new Intl.DateTimeFormat('en', { timeZone });
  } catch {
    throw new RangeError(`${names.timeZone} must be an IANA name such as "Europe/Berlin", got ${show(timeZone)}`);
  }
  return timeZone;
}

function parsed(text: string, every: string, timezone: string, names: OptionNamesOfSchedule): Cron {
  const [, , dayOfMonth = '', , dayOfWeek = ''] = text.split(/ +/);
  try {
    // As in Debian's cron. When the clocks change, each time of `0 2,14 * * *` comes once that day. A day must match both day fields if
    // one of them begins with "*", else only one of the two.
    const domAndDow = [dayOfMonth, dayOfWeek].some((field) => field.startsWith('*'));
    return new Cron(text, { timezone, mode: '5-part', fixedTimeRule: 'no-wildcard', domAndDow });
  } catch (error) {
    const why = (error as Error).message.replace(/^CronPattern: /, '');
    throw new RangeError(`${names.every} must be a valid cron expression, got ${show(every)}: ${printable(why)}`);
  }
}
