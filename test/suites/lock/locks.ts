import { randomUUID } from 'node:crypto';
import { Lock } from '../../../src/python/lock.ts';
import type { LockOptions } from '../../../src/python/options.ts';
import type { Entry } from '../../../src/recipe/store.ts';
import type { KeysApi, Node } from '../../../src/v2/keys-api.ts';
import { until } from '../../support/until.ts';
import { type OpenKeys, storeTest } from '../keys-api/store.ts';

/** A lock of this test, on a client of its own. */
type MakeLock = (options?: LockOptions) => Promise<Lock>;

/** A test with a lock name that no other test uses, and with locks of that name. */
export const lockTest = (open: OpenKeys) =>
  storeTest(open)
    .extend('lockName', () => `contract-${randomUUID()}`)
    .extend(
      'makeLock',
      ({ openAnother, lockName }): MakeLock =>
        async (options) => {
          const keys = await openAnother();
          return new Lock(keys, lockName, options);
        },
    )
    .extend('a', ({ makeLock }) => makeLock())
    .extend('b', ({ makeLock }) => makeLock());

export type LockTest = ReturnType<typeof lockTest>;

/** The queue of a lock, as the store has it. */
export async function queueOf(keys: KeysApi, { path }: Lock): Promise<readonly Node[]> {
  return (await keys.get(path, { sorted: true })).node.nodes;
}

/** Waits until that many stand in the queue. */
export const untilQueued = (lock: Lock, count: number): Promise<readonly Entry[]> =>
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
