import { onTestFinished } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { startOnce } from '../../src/manager/once/scheduler.ts';
import type { Tick, TickReport } from '../../src/manager/once/tick.ts';
import type { LockClient } from '../../src/recipe/client.ts';
import { ManualClock } from './manual-clock.ts';
import { until } from './until.ts';

const HOUR = 3_600_000;

/** Starts a job that runs every hour, by a clock that `nextTick` moves to the next tick. The end of the test stops the job. */
export function useOnce(client: LockClient, name: string) {
  const clock = new ManualClock();
  const locks = new LockManager(client);
  const ticks: Tick[] = [];
  const reports: TickReport[] = [];
  const job = startOnce(
    { store: client.store, defaults: {}, request: (lock, hold, work) => locks.request(lock, hold, work) },
    name,
    { every: '1h', report: (report) => reports.push(report) },
    (_, tick) => ticks.push(tick),
    clock,
  );
  onTestFinished(async () => {
    job.stop();
    await job.stopped;
  });
  /** Moves the clock to the next tick, and waits for its outcome on this host. */
  const nextTick = async (): Promise<void> => {
    const count = reports.length;
    clock.advance(HOUR);
    await until(
      () => reports,
      ({ length }) => length > count,
    );
  };
  return { job, ticks, reports, nextTick };
}
