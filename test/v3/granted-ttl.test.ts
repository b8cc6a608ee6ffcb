import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../src/client.ts';
import { EtcdLockLost } from '../../src/errors.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { Lock } from '../../src/python/lock.ts';
import { aborted } from '../suites/lock/locks.ts';
import { type EtcdMember, startEtcd } from '../support/etcd.ts';
import { entriesBelow } from '../support/gateway.ts';
import { freshName, useProxy } from '../support/locks.ts';
import { elapsed, moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';

let etcd: EtcdMember;

beforeAll(async () => {
  // No lease of this etcd is shorter than 1.5 election timeouts: 8 seconds.
  etcd = await startEtcd({ args: ['--election-timeout=5000', '--heartbeat-interval=500'] });
});
afterAll(() => etcd.stop());

async function setUp() {
  const proxy = await useProxy(etcd.url);
  const client = new EtcdClient({ api: 'v3', endpoints: proxy.url });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  const name = freshName();
  return {
    proxy,
    client,
    name,
    locks: new LockManager(client, { ttl: 1 }),
    ttl: async () => (await entriesBelow(`/_locks/${name}/`, etcd.url))[0]?.ttl ?? 0,
  };
}

test('a hold counts the TTL that etcd has granted, and query() shows it', async () => {
  const { locks, name, ttl } = await setUp();
  const before = moment();
  const held = await locks.acquire(name);
  const passed = () => (moment().at - before.at) / 1000;
  // 8 s less the margin of a tenth.
  expect(held.expiresIn()).toBeLessThanOrEqual(7.2);
  expect(held.expiresIn()).toBeGreaterThan(7.2 - passed());
  expect(held.expiresIn()).toBeGreaterThan(1);
  const { held: holds } = await locks.query(name);
  expect(holds).toMatchObject([{ key: held.key }]);
  expect(holds[0]?.ttl).toBeGreaterThan(1);
  expect(holds[0]?.ttl).toBeLessThanOrEqual(8);
  // Renewed after a third of what was granted, and not of what was asked for.
  const left = await until(ttl, (seconds) => seconds <= 6);
  await until(ttl, (seconds) => seconds > left);
  // A renewal comes early if the event loop was blocked.
  const blocked = passed() - elapsed(before) / 1000;
  expect(passed()).toBeGreaterThan(2 - blocked);
  held.assertHeld();
  expect(await held.release()).toBe(true);
});

test('a hold that cannot be renewed is lost after the TTL that was granted, and not the one that was asked for', async () => {
  const { locks, name, proxy } = await setUp();
  const sent = performance.now();
  const held = await locks.acquire(name);
  proxy.intercept(() => ({ refuse: true }));
  expect(await aborted(held.signal)).toBeInstanceOf(EtcdLockLost);
  expect((performance.now() - sent) / 1000).toBeGreaterThan(7);
});

test('a Lock that is not renewed knows the TTL that was granted', async () => {
  const { client, name, ttl } = await setUp();
  const lock = new Lock(client, name);
  await lock.acquire({ lockTtl: 1 });
  expect(await ttl()).toBeGreaterThan(2);
  // Longer than the TTL that was asked for.
  await until(ttl, (seconds) => seconds <= 5);
  expect(lock.isTaken).toBe(true);
  await lock.release();
});
