import { expect, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { useEtcdClient } from '../support/both.ts';
import { startCluster } from '../support/etcd.ts';
import { freshName } from '../support/locks.ts';

test('a hold in both stores survives the death of the leader, and its waiters follow', async () => {
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  const locksOn = (api: 'v2' | 'both' | 'v3') =>
    new LockManager(useEtcdClient({ endpoints: cluster.urls, api }), { ttl: 30 });
  const name = freshName();
  const held = await locksOn('both').acquire(name);
  const order: string[] = [];
  const next = (['v2', 'both'] as const).map((api) => locksOn(api).request(name, () => order.push(api)));
  const leader = await cluster.leader();
  await leader.kill();
  await cluster.leader();
  expect(await locksOn('v2').acquire(name, { ifAvailable: true })).toBeNull();
  expect(await locksOn('v3').acquire(name, { ifAvailable: true })).toBeNull();
  held.assertHeld();
  expect(order).toEqual([]);
  expect(await held.release()).toBe(true);
  await Promise.all(next);
  expect(order.toSorted()).toEqual(['both', 'v2']);
});
