import { once } from 'node:events';
import type { LockManager } from '../../src/index.ts';
import { raw, rejection, untilQueued } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';

/** A request that waits behind a hold, loses its entry, queues up again, holds and then loses the lock. */
export async function waitRequeueHoldAndLose(name: string): Promise<void> {
  const holder = await useManager().acquire(name);
  const lost = useManager({ ttl: 3 }).request(name, async ({ key, signal }) => {
    await raw('DELETE', key);
    await once(signal, 'abort');
  });
  const [, own] = await untilQueued(name, 2);
  await raw('DELETE', own?.key ?? '');
  await untilQueued(name, 2);
  await holder.release();
  await rejection(lost);
}

/** One request with a hold, and one that gives up in the queue. */
export async function holdAndTimeOut(locks: LockManager, name: string): Promise<void> {
  await locks.request(name, () => rejection(useManager().request(name, { timeout: 0.1 }, () => {})));
}
