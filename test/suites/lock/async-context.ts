import { describe, expect } from 'vitest';
import { ignore } from '../../../src/base/cancellation.ts';
import { Lock } from '../../../src/python/lock.ts';
import type { AcquireOptions } from '../../../src/python/options.ts';
import { flow } from '../../support/flows.ts';
import type { QueueView, StoreClient } from '../stores/store-client.ts';
import type { LockTest } from './locks.ts';

interface Loss {
  readonly options: AcquireOptions;
  readonly lose: (lock: Lock, process: { client: StoreClient; remove(): Promise<void> }) => unknown;
}

const LOSSES: readonly (readonly [how: string, loss: Loss])[] = [
  ['its entry is removed', { options: { lockTtl: 6, keepAlive: true }, lose: (_, { remove }) => remove() }],
  ['its lease is not renewed', { options: { lockTtl: 4 }, lose: () => {} }],
  [
    'another flow acquires it again',
    {
      options: { lockTtl: 60 },
      lose: async (lock, { remove }) => {
        await remove();
        await lock.acquire({ lockTtl: 60 });
      },
    },
  ],
  [
    'another flow acquires it again in vain',
    {
      options: { lockTtl: 60 },
      lose: async (lock, { remove }) => {
        await remove();
        await lock.acquire({ lockTtl: 60, timeout: 0.001 }).catch(() => {});
        await lock.acquire({ lockTtl: 60 });
      },
    },
  ],
  [
    'its client is closed',
    { options: { lockTtl: 3, keepAlive: true }, lose: (_, { client }) => client.close({ timeout: 0 }).catch(() => {}) },
  ],
];

/** Lets one flow acquire a lock, and another one cause the loss. Expects that a listener of the signal runs in the first flow. */
async function expectOwnContext({ options, lose }: Loss, client: StoreClient, view: QueueView, name: string) {
  // Opens the connections, and on etcd v3 begins to watch for losses.
  const other = new Lock(client, `${name}-other`);
  await flow.run('other', () => other.acquire({ lockTtl: 60 }));
  const lock = new Lock(client, name);
  expect(await flow.run('own', () => lock.acquire(options))).toBe(true);
  const { lockKey, signal } = lock;
  const heard = new Promise((resolve) => signal.addEventListener('abort', () => resolve(flow.getStore())));
  await flow.run('losing', async () => lose(lock, { client, remove: () => view.remove(lockKey) }));
  expect(await heard).toBe('own');
  for (const each of [lock, other]) await each.release().catch(ignore);
}

export function asyncContext(test: LockTest): void {
  describe.concurrent('listeners of the signal run in the async context of the acquire that got the lock', () => {
    test.for(LOSSES)('when %s', async ([, loss], { openAnother, queue, lockName }) => {
      await expectOwnContext(loss, await openAnother(), queue, lockName);
    });
  });

  test('listeners of the signal run there if another flow notices the loss first', async ({
    openAnother,
    queue,
    lockName,
  }) => {
    const lose = (lock: Lock) => {
      while (lock.isTaken);
    };
    await expectOwnContext({ options: { lockTtl: 3 }, lose }, await openAnother(), queue, lockName);
  });
}
