import { expect, type TestContext } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** Seconds that each waiter took to go on. */
    recovered?: number[];
  }
}

export interface Recovery {
  /** `performance.now()` from which the limit counts. */
  readonly from: number;
  /** `performance.now()` when the waiter went on; earlier is as good as at once. */
  readonly to: number;
  /** Seconds. */
  readonly limit: number;
}

/** Notes for the report how long a waiter took to go on, and fails where that was too long. */
export function recovered({ task }: Pick<TestContext, 'task'>, { from, to, limit }: Recovery): void {
  const seconds = Math.max(to - from, 0) / 1000;
  task.meta.recovered = [...(task.meta.recovered ?? []), seconds];
  expect(seconds, 'seconds until the waiter went on').toBeLessThanOrEqual(limit);
}

/** Seconds from a release where the connection showed the fault. */
export const SHOWN = 1;
/** Seconds from the moment there is a leader again. */
export const ELECTED = 5;
/** Seconds from a release where the connection died silently: one poll's cap. */
export const silent = (ttl: number): number => Math.min(ttl / 3, 20);
/** Seconds from the death of a holder. */
export const died = (ttl: number): number => ttl + 2;
