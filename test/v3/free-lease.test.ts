// The lease of a Lock that is not renewed: it serves the next one.
import { expect, onTestFinished, test } from 'vitest';
import { Lock } from '../../src/python/lock.ts';
import { V3Client } from '../../src/v3/client.ts';
import { base64, entriesBelow, gateway } from '../support/gateway.ts';
import { freshName, useProxy } from '../support/locks.ts';
import { until } from '../support/until.ts';

async function setUp() {
  const proxy = await useProxy();
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  const use = async (lockTtl: number): Promise<{ readonly key: string; readonly lease: string }> => {
    const lock = new Lock(client, freshName());
    await lock.acquire({ lockTtl });
    const { kvs } = await gateway('/kv/range', { key: base64(lock.lockKey) });
    await lock.release();
    return { key: lock.lockKey, lease: `${kvs?.[0]?.lease}` };
  };
  return { proxy, client, use };
}

const leftOf = async (lease: string): Promise<number> =>
  Number((await gateway('/lease/timetolive', { ID: lease })).TTL);

test('serves the next Lock with its TTL, and is revoked when the client is closed', async () => {
  const { proxy, client, use } = await setUp();
  const { lease } = await use(600);
  const before = proxy.requests.length;
  expect((await use(600)).lease).toBe(lease);
  const paths = proxy.requests.slice(before).map(({ path }) => path);
  expect(paths).toEqual(['/v3/lease/keepalive', '/v3/kv/txn', '/v3/kv/txn']);
  expect((await use(500)).lease).not.toBe(lease);
  await client.close();
  expect(await leftOf(lease)).toBe(-1);
});

test('has its whole TTL again for the next Lock', async () => {
  const { client, use } = await setUp();
  const { lease } = await use(20);
  const left = await until(
    () => leftOf(lease),
    (seconds) => seconds <= 17,
  );
  const lock = new Lock(client, freshName());
  await lock.acquire({ lockTtl: 20 });
  expect(await leftOf(lease)).toBeGreaterThan(left);
  await lock.release();
});

test('is replaced if etcd has ended it', async () => {
  const { use } = await setUp();
  const { lease } = await use(600);
  await gateway('/kv/lease/revoke', { ID: lease });
  expect((await use(600)).lease).not.toBe(lease);
});

test('ends with what a late copy of an append has created, if nobody uses it', async () => {
  const { client, use } = await setUp();
  const { key, lease } = await use(3);
  await gateway('/kv/put', { key: base64(key), value: base64('late'), lease });
  expect(await entriesBelow(key)).toHaveLength(1);
  const next = new Lock(client, `${key.split('/')[2]}`);
  expect(await next.acquire({ lockTtl: 30, timeout: 60 })).toBe(true);
  await next.release();
});
