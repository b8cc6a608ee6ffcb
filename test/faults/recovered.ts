import { expect, type TestContext } from 'vitest';
import { elapsed, type Moment } from '../support/stalls/stalls.mjs';

declare module 'vitest' {
  interface TaskMeta {
    /** Seconds that each waiter took to acquire the lock, without the time for which the machine stood still. */
    recovered?: number[];
  }
}

export interface Recovery {
  /** When the limit begins to count. */
  readonly from: Moment;
  /** When the waiter acquired the lock; a moment before `from` counts as 0 seconds. */
  readonly to: Moment;
  /** Seconds on a machine that never stands still. */
  readonly limit: number;
}

/** Notes for the report how long a waiter took to acquire the lock, and fails if that was too long. */
export function recovered({ task }: Pick<TestContext, 'task'>, { from, to, limit }: Recovery): void {
  const seconds = Math.max(elapsed(from, to), 0) / 1000;
  task.meta.recovered = [...(task.meta.recovered ?? []), seconds];
  expect(seconds, 'seconds until the waiter acquired the lock').toBeLessThanOrEqual(limit);
}

/** Seconds from a release where the connection showed the fault. */
export const SHOWN = 1;
/** Seconds from the moment there is a leader again. */
export const ELECTED = 5;
/** Seconds from a release where the connection died silently: one poll's cap. */
export const silent = (ttl: number): number => Math.min(ttl / 3, 20);
/** Seconds from the death of a holder. */
export const died = (ttl: number): number => ttl + 2;
