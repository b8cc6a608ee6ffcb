import { addAbortListener, removeAbortListener, Scope } from '../../base/cancellation.ts';
import type { Clock } from '../../base/time.ts';
import type { LockStore } from '../../recipe/store.ts';
import type { Held } from '../held.ts';
import type { HoldOptions, LockManagerOptions } from '../options.ts';
import { TickAttempt, type TickJob, type TickWork } from './attempt.ts';
import { hostClock } from './clock.ts';
import type { OnceJob } from './job.ts';
import { type CheckedOnce, checkOnce, type OnceOptions } from './options.ts';

/** Milliseconds between two checks of the clock: it may be set, or the host may be suspended. */
const CHECK_EVERY = 60_000;

/** Options of a request that waits for the lock. */
type Waiting = HoldOptions & { readonly ifAvailable?: never };

/** What a job uses of its manager. */
export interface JobManager {
  readonly store: LockStore;
  readonly defaults: LockManagerOptions;
  readonly request: (name: string, options: Waiting, work: (held: Held) => Promise<void>) => Promise<void>;
}

/**
 * Starts a job. See `LockManager.once`.
 * @throws {TypeError | RangeError} for an invalid argument, before anything is sent
 */
export function startOnce(
  { store, defaults, request }: JobManager,
  name: string,
  options: OnceOptions,
  work: TickWork,
  clock: Clock = hostClock,
): OnceJob {
  store.queue(name);
  store.marker(name);
  const checked = checkOnce(name, options, defaults);
  const { schedule, label, hold } = checked;
  const lock: TickJob['lock'] = (limits, run) => request(name, { ...hold, ...limits }, run);
  const stop = new Scope(checked.signal, store.pending.closing);
  const stopped = runTicks({ store, name, label, schedule, clock, lock }, checked, work, stop).finally(() =>
    stop.dispose(),
  );
  return {
    stop: () => stop.abort(STOPPED),
    stopped,
    async [Symbol.asyncDispose]() {
      stop.abort(STOPPED);
      await stopped;
    },
  };
}

/** Abort reason of a job that was stopped. */
const STOPPED = new Error('the job was stopped');

/** Attempts each tick that becomes due from now on. If several become due during one attempt, tries only the last. */
async function runTicks(job: TickJob, { report }: CheckedOnce, work: TickWork, stop: Scope): Promise<void> {
  const { schedule, clock } = job;
  let seen = schedule.current(clock.now());
  while (!stop.aborted) {
    const time = clock.now();
    const current = schedule.current(time);
    const isDue = current > seen;
    // If the clock was set back, ticks are attempted again: the store knows which have been begun.
    seen = current;
    if (!isDue) await wait(clock, Math.min(schedule.next(time) - time, CHECK_EVERY), stop);
    else {
      const attempt = new TickAttempt(job, current, { signal: stop.signal });
      const outcome = await attempt.run(work).catch((error) => {
        if (!stop.aborted) throw error;
      });
      if (outcome) report(outcome);
    }
  }
}

/** Waits on the clock, at most until the job is stopped. */
const wait = (clock: Clock, ms: number, stop: Scope): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      cancel();
      removeAbortListener(stop, end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    addAbortListener(stop, end);
  });
