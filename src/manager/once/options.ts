import { show } from '../../base/checks.ts';
import { errorText } from '../../base/error-text.ts';
import { checkOptionNames, type OptionNames } from '../../base/option-names.ts';
import { printable } from '../../base/printable.ts';
import { type CheckedRequest, checkRequest, type HoldOptions, type LockManagerOptions } from '../options.ts';
import { type Schedule, scheduleOf } from './schedule.ts';
import type { TickReport } from './tick.ts';

/** Options of a job that runs once per tick. The options of its lock default to the manager's. */
export interface OnceOptions extends Pick<HoldOptions, 'ttl' | 'identity' | 'maxHold' | 'label' | 'signal'> {
  /**
   * When the ticks are due: the same text on every host.
   * - An interval: `'30s'`, `'15m'`, `'1h'`, `'1d'`, at most `'366d'`. The ticks are its multiples since 1970-01-01T00:00:00Z.
   * - A cron expression of five fields, such as `'0 3 * * 1-5'`, or a nickname, such as `'@daily'`
   */
  readonly every: string;
  /** Time zone of a cron expression, such as `'Europe/Berlin'`. Default `'UTC'`. */
  readonly timeZone?: string | undefined;
  /**
   * Called with the outcome of each tick that this job tried to begin. Of several ticks that become due during one
   * attempt, the job tries only the last. If `report` throws, the job stops, and {@link OnceJob.stopped} rejects.
   * Default: a process warning for each tick that failed or was skipped.
   */
  readonly report?: ((report: TickReport) => void) | undefined;
}

const NAMES = {
  ttl: true,
  identity: true,
  maxHold: true,
  label: true,
  signal: true,
  every: true,
  timeZone: true,
  report: true,
} satisfies OptionNames<OnceOptions>;

export interface CheckedOnce {
  readonly schedule: Schedule;
  readonly report: (report: TickReport) => void;
  readonly signal: AbortSignal | undefined;
  readonly label: string | undefined;
  /** The options of the requests for the lock. */
  readonly hold: Pick<OnceOptions, 'ttl' | 'identity' | 'maxHold' | 'label'> & typeof ALWAYS;
}

/** @throws {TypeError | RangeError} if an option is unknown or invalid; the message contains its name or value */
export function checkOnce(name: string, options: OnceOptions, defaults: LockManagerOptions): CheckedOnce {
  checkOptionNames(options, NAMES);
  const { every, timeZone, report = warnings(name), signal, ...hold } = options;
  const schedule = scheduleOf(every, timeZone);
  if (typeof report !== 'function') throw new TypeError(`report must be a function, got ${show(report)}`);
  const { label }: CheckedRequest = checkRequest({ ...hold, ...ALWAYS, signal }, defaults);
  return { schedule, report, signal, label, hold: { ...hold, ...ALWAYS } };
}

/** Replaces defaults of the manager: the next tick ends the wait, and the record keeps other hosts from running the same tick. */
const ALWAYS = { timeout: 0, holdAtLeast: 0 } satisfies HoldOptions;

/** Returns the default of `report`. */
const warnings =
  (name: string) =>
  ({ outcome, at, error }: TickReport): void => {
    if (outcome === 'ran' || outcome === 'taken') return;
    const how = outcome === 'failed' ? 'failed' : 'was skipped';
    process.emitWarning(`the tick ${at.toISOString()} of ${show(name)} ${how}: ${printable(errorText(error))}`, {
      code: 'ETCD_LOCK_TICK_NOT_DONE',
    });
  };
