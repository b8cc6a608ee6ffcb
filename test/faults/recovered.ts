import { expect, type TestContext } from 'vitest';
import { elapsed, type Moment } from '../support/stalls/stalls.mjs';

import { STORE } from './stores/tested.ts';

declare module 'vitest' {
  interface TaskMeta {
    /** Seconds that each waiter took to acquire the lock, without the time for which the machine was stalled. */
    recovered?: number[];
  }
}

export interface Recovery {
  /** When the limit starts. */
  readonly from: Moment;
  /** When the waiter acquired the lock; a moment before `from` counts as 0 seconds. */
  readonly to: Moment;
  /** Seconds, without the time for which the machine was stalled. */
  readonly limit: number;
}

/** Records for the report how long a waiter took to acquire the lock, and fails if that was too long. */
export function recovered({ task }: Pick<TestContext, 'task'>, { from, to, limit }: Recovery): void {
  const seconds = Math.max(elapsed(from, to), 0) / 1000;
  task.meta.recovered = [...(task.meta.recovered ?? []), seconds];
  expect(seconds, 'seconds until the waiter acquired the lock').toBeLessThanOrEqual(limit);
}

/** Limit in seconds from a release, if the connection showed the fault. */
export const SHOWN = 1;
/** Limit in seconds from the moment at which there is a leader again. */
export const ELECTED = 5;
/** Limit in seconds from a release, if the connection died silently: the poll cap. */
export const silent = (ttl: number): number => Math.min(Math.max(ttl, STORE.shortestTtl) / 3, 20);
/** Limit in seconds from the death of a holder. */
export const died = (ttl: number): number => ttl + 2;
