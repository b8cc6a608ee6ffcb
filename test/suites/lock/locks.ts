import { Lock } from '../../../src/python/lock.ts';
import type { LockOptions } from '../../../src/python/options.ts';
import type { Entry } from '../../../src/recipe/store.ts';
import { until } from '../../support/until.ts';
import { clientTest } from '../stores/client-test.ts';
import type { OpenClient } from '../stores/store-client.ts';

/** Creates a lock with the name of this test, on a new client. */
type MakeLock = (options?: LockOptions) => Promise<Lock>;

/** A test whose locks have the same name, each on its own client. */
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

/** Waits until the queue has this many entries, and returns them. */
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
