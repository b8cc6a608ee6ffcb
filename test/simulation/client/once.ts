import type { LockManager, OnceJob } from '../../../src/index.ts';
import type { Report } from '../report.ts';
import { claimOf } from './claim-of.ts';

/** Starts jobs that run once per tick, on all hosts that do so: an interval, and a cron expression. */
export function startJobs(
  manager: LockManager,
  report: Report,
  sleep: (ms: number) => Promise<void>,
): readonly OnceJob[] {
  // The first one warns of ticks that were not run.
  const schedules = [{ every: '7s' }, { every: '* * * * *', timeZone: 'UTC', report: () => {} }];
  return schedules.map((schedule, i) =>
    manager.once(`job${i}`, schedule, async (held, tick) => {
      report.tick(`job${i}`, tick.at);
      const hold = report.hold(claimOf(held));
      held.signal.addEventListener('abort', () => hold.lost(held.signal.reason));
      await sleep(2000 * Math.random());
      hold.ended();
    }),
  );
}
