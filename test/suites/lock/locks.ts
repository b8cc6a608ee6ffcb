import { Lock } from '../../../src/python/lock.ts';
import type { LockOptions } from '../../../src/python/options.ts';
import type { Entry } from '../../../src/recipe/store.ts';
import { until } from '../../support/until.ts';
import { clientTest } from '../stores/client-test.ts';
import type { OpenClient } from '../stores/store-client.ts';

/** A lock of this test, on a client of its own. */
type MakeLock = (options?: LockOptions) => Promise<Lock>;

/** A test with locks of one name. */
export const lockTest = (open: OpenClient) =>
  clientTest(open)
    .extend(
      'makeLock',
      ({ openAnother, lockName }): MakeLock =>
        async (options) =>
          new Lock(await openAnother(), lockName, options),
    )
    .extend('a', ({ makeLock }) => makeLock())
    .extend('b', ({ makeLock }) => makeLock());

export type LockTest = ReturnType<typeof lockTest>;

/** Waits until that many contenders are in the queue, as the lock itself sees them. */
export const untilContenders = (lock: Lock, count: number): Promise<readonly Entry[]> =>
  until(
    () => lock.contenders(),
    (queue) => queue.length === count,
  );

/** Resolves with the reason once the signal aborts. */
export const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener('abort', () => resolve(signal.reason), { once: true });
  });
