// What viewers cost.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient, LockManager } from '../../../src/index.ts';
import { useProxy } from '../../support/locks.ts';
import { useLockName } from '../../support/queues.ts';
import { follow, startUi } from '../../support/ui.ts';

test.each(['v2', 'v3'] as const)('49 further viewers cause not even one request each to etcd %s', async (api) => {
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
  const first = await follow(`${url}/api/events`);
  await first.next('snapshot');
  const before = requests;
  const others = Array.from({ length: 49 }, () => follow(`${url}/api/events`));
  await Promise.all((await Promise.all(others)).map((events) => events.next('snapshot')));
  // The lock that they see is read every two seconds, on a slow machine perhaps twice, and a long poll may end.
  await sleep(8000);
  expect(requests).toBeGreaterThan(before);
  expect(requests - before).toBeLessThan(49);
  await held.release();
});
