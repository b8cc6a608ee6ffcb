import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { LockManager } from '../../../src/manager/manager.ts';
import { Lock } from '../../../src/python/lock.ts';
import { V3Client } from '../../../src/v3/client.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

const isWrite = ({ path, body }: ProxiedRequest): boolean => path.endsWith('/kv/txn') && body.includes('request_put');
const isGrant = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/grant');
const isTtlRead = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/timetolive');

async function setUp() {
  const proxy = await useProxy();
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  return { proxy, client, locks: new LockManager(client, { ttl: 60 }), name: freshName() };
}

test.each([
  ['writes', isWrite],
  ['grants leases', isGrant],
])('a store that %s more slowly than other members are asked still grants a lock', async (_, isSlow) => {
  const { proxy, locks, name } = await setUp();
  proxy.intercept((request) => (isSlow(request) ? { answerAfter: sleep(1500) } : undefined));
  const held = await locks.acquire(name, { timeout: 60 });
  expect(await entriesBelow(`/_locks/${name}/`)).toMatchObject([{ key: held.key }]);
  expect(await held.release()).toBe(true);
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
});

test.each([
  ['append', isWrite],
  ['grant', isGrant],
])('an unanswered %s is sent again beside the first one, and leaves nothing', async (_, isSlow) => {
  const { proxy, client, locks, name } = await setUp();
  let isFirst = true;
  proxy.intercept((request) => {
    if (!isSlow(request) || !isFirst) return undefined;
    isFirst = false;
    return { silent: true };
  });
  const lock = new Lock(client, name);
  await lock.acquire({ timeout: 60, lockTtl: 60 });
  expect(proxy.requests.filter(isSlow).map(({ status }) => status)).toEqual([undefined, 200]);
  expect(await entriesBelow(`/_locks/${name}/`)).toHaveLength(1);
  await lock.release();
  expect(await locks.request(name, () => 'held')).toBe('held');
  await client.close();
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
});

test('the second try to append an entry asks the third member if the first two have not answered the first try', async () => {
  const proxies = await Promise.all([useProxy(), useProxy(), useProxy()]);
  const client = new V3Client({ endpoints: proxies.map(({ url }) => url) });
  onTestFinished(() => client.close().catch(() => {}));
  const locks = new LockManager(client, { ttl: 60 });
  await locks.request(freshName(), () => {});
  const asked: string[] = [];
  for (const { url, intercept } of proxies)
    intercept((request) => {
      if (!isWrite(request)) return undefined;
      asked.push(url);
      return new Set(asked).size < 3 ? { silent: true } : undefined;
    });
  const held = await locks.acquire(freshName(), { timeout: 60 });
  expect(asked).toHaveLength(3);
  await held.release();
});

test('leases that are not created in time at the same moment lengthen the next tries once', async () => {
  const { proxy, client, name } = await setUp();
  const failed = new Map<string, number>();
  proxy.intercept((request) => {
    if (!isGrant(request)) return undefined;
    const { ID } = JSON.parse(request.body);
    if (!failed.has(ID)) failed.set(ID, client.leases.failedGrants);
    return { silent: true };
  });
  const locks = [1, 2, 3].map((n) => new Lock(client, `${name}-${n}`));
  const stop = new AbortController();
  const ended = Promise.allSettled(locks.map((lock) => lock.acquire({ timeout: 60, signal: stop.signal })));
  await until(
    () => failed,
    ({ size }) => size >= 6,
  );
  expect([...failed.values()].slice(0, 6)).toEqual([0, 0, 0, 1, 1, 1]);
  stop.abort();
  await ended;
});

test('a store that grants leases slowly grants a lock although others keep coming, whose first tries are short', async () => {
  const { proxy, locks, name } = await setUp();
  proxy.intercept((request) => (isGrant(request) ? { answerAfter: sleep(2500) } : undefined));
  let isServed = false;
  const first = locks.request(name, () => {
    isServed = true;
  });
  const others: Promise<unknown>[] = [];
  for (let i = 0; i < 400 && !isServed; i += 1) {
    others.push(locks.request(`${name}-${i}`, () => {}));
    await sleep(20);
  }
  expect(isServed).toBe(true);
  await Promise.all([first, ...others]);
});

test.each([
  ['append', isWrite],
  ['grant', isGrant],
])('a wait that ends while no %s is answered names the member', async (_, isSlow) => {
  const { proxy, client, name } = await setUp();
  proxy.intercept((request) => (isSlow(request) ? { silent: true } : undefined));
  const error = await rejection(new Lock(client, name).acquire({ timeout: 3 }));
  expect(error).toMatchObject({ reason: 'unreachable' });
  expect(String(error)).toContain(`${proxy.url}: no answer in 2 s`);
});

test('a query that takes long, because each of many entries has its own lease, is no outage', async () => {
  const { proxy, client, name } = await setUp();
  const leases = Array.from({ length: 80 }, (_, i) =>
    String(7_000_000_000 + Math.floor(Math.random() * 1e9) * 100 + i),
  );
  await Promise.all(leases.map((ID) => gateway('/lease/grant', { ID, TTL: '600' })));
  onTestFinished(async () => {
    await Promise.all(leases.map((ID) => gateway('/lease/revoke', { ID })));
  });
  for (const lease of leases)
    await gateway('/kv/put', { key: base64(`/_locks/${name}/${lease}`), value: base64(lease), lease });
  proxy.intercept((request) => (isTtlRead(request) ? { answerAfter: sleep(50) } : undefined));
  const contenders = await new Lock(client, name).contenders();
  expect(contenders.map(({ ttl }) => ttl)).toEqual(leases.map(() => expect.any(Number)));
});
