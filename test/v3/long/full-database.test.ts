import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../../src/client.ts';
import { EtcdException, isTransient } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { type EtcdMember, startEtcd } from '../../support/etcd.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import { until } from '../../support/until.ts';

let etcd: EtcdMember;

beforeAll(async () => {
  etcd = await startEtcd({ args: ['--quota-backend-bytes=300000'] });
});
afterAll(() => etcd.stop());

async function setUp() {
  const proxy = await useProxy(etcd.url);
  const client = new EtcdClient({ api: 'v3', endpoints: proxy.url });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return { proxy, locks: new LockManager(client, { ttl: 20 }), name: freshName() };
}

test('when the database is full, acquire says so at once, and holds are renewed and released', async () => {
  const [owner, waiter, late] = [await setUp(), await setUp(), await setUp()];
  const held = await owner.locks.acquire(owner.name);
  // As many more as need transactions within one, which counts as a write.
  const others = await Promise.all(Array.from({ length: 120 }, () => owner.locks.acquire(freshName())));
  const waiting = waiter.locks.acquire(owner.name);
  await until(
    () => entriesBelow(`/_locks/${owner.name}/`, etcd.url),
    ({ length }) => length === 2,
  );
  const big = base64('x'.repeat(40_000));
  await until(
    () => gateway('/kv/put', { key: base64('big'), value: big }, etcd.url),
    (answer) => (answer as { code?: number }).code === 8,
  );

  const error = await rejection(late.locks.acquire(late.name, { timeout: 20 }));
  expect(error).toBeInstanceOf(EtcdException);
  expect(error).toMatchObject({ errorCode: 8 });
  expect(isTransient(error)).toBe(false);
  expect(error).toHaveProperty('message', expect.stringMatching(/database space exceeded; free space .*alarm disarm/));
  expect(late.proxy.requests.filter(({ path }) => path === '/v3/lease/grant')).toHaveLength(1);

  const left = held.expiresIn();
  await until(
    () => {
      held.assertHeld();
      return held.expiresIn();
    },
    (seconds) => seconds > left,
  );
  for (const other of others) expect(await other.release()).toBe(true);
  expect(await held.release()).toBe(true);
  const next = await waiting;
  expect(await next.release()).toBe(true);
  expect(await entriesBelow(`/_locks/${owner.name}/`, etcd.url)).toEqual([]);

  // `physical`: otherwise etcd may answer before it has freed the space, and the defragmentation may then give back nothing.
  await gateway('/kv/compaction', { revision: String(next.fencingToken), physical: true }, etcd.url);
  await gateway('/maintenance/defragment', {}, etcd.url);
  const { alarms = [] } = (await gateway('/maintenance/alarm', {}, etcd.url)) as { alarms?: object[] };
  expect(alarms).toHaveLength(1);
  await gateway('/maintenance/alarm', { action: 'DEACTIVATE', ...alarms[0] }, etcd.url);
  expect(await late.locks.request(late.name, () => 'held')).toBe('held');
});
