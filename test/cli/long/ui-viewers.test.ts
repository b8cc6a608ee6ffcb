// What viewers cost.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient, LockManager } from '../../../src/index.ts';
import { useProxy } from '../../support/locks.ts';
import { useLockName } from '../../support/queues.ts';
import { follow, startUi } from '../../support/ui.ts';

test.each(['v2', 'v3'] as const)('50 viewers cause as many requests to etcd %s as one', async (api) => {
  const name = useLockName();
  const client = new EtcdClient({ endpoints: inject('etcd'), api });
  onTestFinished(() => client.close());
  const held = await new LockManager(client).acquire(name);
  const proxy = await useProxy();
  let requests = 0;
  proxy.intercept(() => {
    requests += 1;
    return undefined;
  });
  const { line: url } = await startUi(['--api', api, name], proxy.url);
  const inTime = async (): Promise<number> => {
    const before = requests;
    await sleep(8000);
    return requests - before;
  };
  const first = await follow(`${url}/api/events`);
  await first.next('snapshot');
  const ofOne = await inTime();
  const others = Array.from({ length: 49 }, () => follow(`${url}/api/events`));
  await Promise.all((await Promise.all(others)).map((events) => events.next('snapshot')));
  // A long poll may end in either time.
  expect(await inTime()).toBeLessThanOrEqual(ofOne + 2);
  expect(ofOne).toBeGreaterThan(0);
  await held.release();
});
