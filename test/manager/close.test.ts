import { expect, test } from 'vitest';
import { EtcdClientClosed, LockManager } from '../../src/index.ts';
import { freshName, queueOn, rejection, useClient } from '../support/locks.ts';

test.each([{}, { timeout: 20 }])(
  'a request on a closing client rejects although this process still holds the lock: %j',
  async (options) => {
    const name = freshName();
    const client = useClient();
    const locks = new LockManager(client);
    const held = await locks.acquire(name);
    const closed = client.close();
    expect(await rejection(locks.request(name, options, () => 'ran'))).toBeInstanceOf(EtcdClientClosed);
    await held.release();
    await closed;
    expect(await queueOn(name)).toEqual([]);
  },
);
