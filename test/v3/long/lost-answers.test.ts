import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { EtcdLockTimeout } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { Lock } from '../../../src/python/lock.ts';
import { V3Client } from '../../../src/v3/client.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import { first } from '../../support/lost-requests.ts';
import type { EtcdProxy, ProxiedRequest } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

const isAppend = ({ path, body }: ProxiedRequest): boolean => path.endsWith('/kv/txn') && body.includes('request_put');
const isRemoval = ({ path, body }: ProxiedRequest): boolean =>
  path.endsWith('/kv/deleterange') || (path.endsWith('/kv/txn') && body.includes('request_delete_range'));
const isGrant = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/grant');
const isKeepAlive = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/keepalive');
const isRevoke = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/revoke');

/** A client behind a proxy that swallows the answer to the first request of a kind. */
async function setUp(isLost: (request: ProxiedRequest) => boolean) {
  const proxy = await useProxy();
  let lost = 0;
  proxy.intercept((request) => {
    if (lost > 0 || !isLost(request)) return undefined;
    lost += 1;
    return { swallow: true };
  });
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  const name = freshName();
  return { client, name, proxy, locks: new LockManager(client, { ttl: 10 }), lost: () => lost };
}

/** The leases that this client has created, and that etcd still has. */
async function leasesOf(requests: readonly ProxiedRequest[]): Promise<string[]> {
  const created = requests.filter(isGrant).map(({ body }) => (JSON.parse(body) as { ID: string }).ID);
  const { leases = [] } = await gateway('/lease/leases', {}, inject('etcd'));
  const present = new Set(leases.map(({ ID }) => ID));
  return created.filter((id) => present.has(id));
}

/** Waits until etcd has none of these leases. Fails before they would expire. */
const untilNoLease = (requests: readonly ProxiedRequest[]) =>
  until(
    () => leasesOf(requests),
    ({ length }) => length === 0,
    { timeout: 8000 },
  );

const untilEmpty = (name: string) =>
  until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 0,
  );

/** Lets etcd carry out the append that is held up, and waits until its key is removed. */
async function expectLateRemoved(proxy: EtcdProxy, name: string, heldUp: Gate): Promise<void> {
  const late = proxy.next(isAppend, 'answered');
  heldUp.open();
  await late;
  await untilEmpty(name);
}

describe('a lost answer to', () => {
  test.each([
    ['an append', isAppend],
    ['the creation of a lease', isGrant],
    ['a removal', isRemoval],
  ])('%s makes no second key, and leaves neither a key nor a lease behind', async (_, isLost) => {
    for (let round = 0; round < 20; round += 1) {
      const { client, name, proxy, locks, lost } = await setUp(isLost);
      const held = await locks.acquire(name);
      expect(await entriesBelow(`/_locks/${name}/`)).toMatchObject([{ key: held.key }]);
      expect(await held.release()).toBe(true);
      await untilEmpty(name);
      expect(lost()).toBe(1);
      await client.close();
      await untilNoLease(proxy.requests);
    }
  });

  test('a keep-alive does not end the hold', async () => {
    const { client, name, locks, proxy, lost } = await setUp(isKeepAlive);
    const held = await locks.acquire(name, { ttl: 12 });
    await until(
      () => proxy.requests.filter(isKeepAlive),
      ({ length }) => length > 1,
    );
    expect(lost()).toBe(1);
    held.assertHeld();
    expect(await held.release()).toBe(true);
    await client.close();
    await untilNoLease(proxy.requests);
  });

  test('the end of a lease is asked for once more', async () => {
    const { client, name, locks, proxy, lost } = await setUp(isRevoke);
    await locks.request(name, () => undefined);
    await client.close();
    expect(lost()).toBe(1);
    await untilNoLease(proxy.requests);
  });
});

test('an append that etcd carries out late does not bring the key back for good', async () => {
  const proxy = await useProxy();
  const name = freshName();
  const stuck = gate();
  let appends = 0;
  proxy.intercept((request) => {
    if (!isAppend(request)) return undefined;
    appends += 1;
    return appends === 1 ? { hold: stuck.opened, cut: true } : undefined;
  });
  const client = new V3Client({ endpoints: proxy.url });
  const locks = new LockManager(client, { ttl: 10 });
  const held = await locks.acquire(name);
  expect(appends).toBe(2);
  expect(await held.release()).toBe(true);
  stuck.open();
  await client.close();
  await untilEmpty(name);
  expect(await leasesOf(proxy.requests)).toEqual([]);
});

test('a late append is removed, also if a late copy of a request has created its lease again', async () => {
  const [proxy, name] = [await useProxy(), freshName()];
  const [grant, append] = [gate(), gate()];
  proxy.intercept(first(1, isGrant, { hold: grant.opened, cut: true }));
  proxy.intercept(first(1, isAppend, { hold: append.opened, cut: true }));
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  const held = await new LockManager(client, { ttl: 60 }).acquire(name);
  await held.release();
  await untilNoLease(proxy.requests);
  const created = proxy.next(isGrant, 'answered');
  grant.open();
  await created;
  const [other] = await leasesOf(proxy.requests);
  expect(other).toBeDefined();
  await expectLateRemoved(proxy, name, append);
  await gateway('/lease/revoke', { ID: other });
});

test('a late append is removed, also if a member has said that its lease is gone', async () => {
  const [proxy, name, stuck] = [await useProxy(), freshName(), gate()];
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  const locks = new LockManager(client, { ttl: 15 });
  const other = await locks.acquire(freshName());
  const allow = proxy.intercept((request) => (isAppend(request) ? { hold: stuck.opened, cut: true } : undefined));
  expect(await rejection(locks.acquire(name, { timeout: 1 }))).toBeInstanceOf(EtcdLockTimeout);
  allow();
  const { header } = await gateway('/kv/range', { key: base64('x') });
  const gone = { late: new Promise(() => {}), status: 200, body: { result: { header } } };
  const tell = proxy.intercept((request) => (isKeepAlive(request) ? gone : undefined));
  await until(
    () => other.signal.aborted,
    (isLost) => isLost,
    { timeout: 20_000 },
  );
  tell();
  await expectLateRemoved(proxy, name, stuck);
  expect(await leasesOf(proxy.requests)).toHaveLength(1);
});

test('a late append of a Lock without a TTL is removed, also after release has found no entry', async () => {
  const proxy = await useProxy();
  const name = freshName();
  const stuck = gate();
  const allow = proxy.intercept((request) => (isAppend(request) ? { hold: stuck.opened, cut: true } : undefined));
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  const lock = new Lock(client, name);
  await rejection(lock.acquire({ lockTtl: null, timeout: 1 }));
  await rejection(lock.release());
  allow();
  await expectLateRemoved(proxy, name, stuck);
});

test('a release that does not reach etcd does not end the removal of a late append', async () => {
  const [proxy, name, stuck] = [await useProxy(), freshName(), gate()];
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  const lock = new Lock(client, name);
  const allow = [
    proxy.intercept((request) => (isAppend(request) ? { hold: stuck.opened, cut: true } : undefined)),
    proxy.intercept(({ path }) => (path.endsWith('/kv/range') ? { refuse: true } : undefined)),
  ];
  await rejection(lock.acquire({ lockTtl: 600, timeout: 1 }));
  await rejection(lock.release());
  for (const each of allow) each();
  await expectLateRemoved(proxy, name, stuck);
});

test('a late append of a hold with holdAtLeast is removed after the entry has expired', async () => {
  const proxy = await useProxy();
  const [name, stuck] = [freshName(), gate()];
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  // Long enough for a renewal on a busy machine: refused appends limit the rate of all requests.
  const locks = new LockManager(client, { ttl: 12 });
  const other = await locks.acquire(freshName());
  proxy.intercept(first(1, isAppend, { hold: stuck.opened, cut: true }));
  const held = await locks.acquire(name, { holdAtLeast: 2 });
  await held.release();
  expect(await entriesBelow(`/_locks/${name}/`)).toMatchObject([{ key: held.key }]);
  await untilEmpty(name);
  await expectLateRemoved(proxy, name, stuck);
  await other.release();
});

test('a lease for the rest of holdAtLeast is ended if its creation is answered too late', async () => {
  const [proxy, answer] = [await useProxy(), gate()];
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  const held = await new LockManager(client, { ttl: 6 }).acquire(freshName(), { holdAtLeast: 300 });
  proxy.intercept(first(1, isGrant, { answerAfter: answer.opened }));
  const granted = proxy.next(isGrant, 'answered');
  const releasing = held.release();
  const { body } = await granted;
  const { ID: late } = JSON.parse(body) as { ID: string };
  await releasing;
  answer.open();
  await until(
    () => leasesOf(proxy.requests),
    (ids) => !ids.includes(late),
  );
  // The entry has another lease by now, or gets one.
  expect(await entriesBelow(held.key)).toHaveLength(1);
  await gateway('/kv/deleterange', { key: base64(held.key) });
});

test('an entry stays although a lease that an unanswered append may have used is kept alive for another lock', async () => {
  const proxy = await useProxy();
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  // Long enough for a renewal on a busy machine: refused appends limit the rate of all requests.
  const locks = new LockManager(client, { ttl: 12 });
  const other = await locks.acquire(freshName());
  const [lease] = await leasesOf(proxy.requests);
  proxy.intercept((request) =>
    isAppend(request) && request.body.includes(`"${lease}"`) ? { refuse: true } : undefined,
  );
  const name = freshName();
  const waiting = locks.acquire(name);
  // Both have an unanswered append. After this one has given up, the lease takes no more entries: the other one creates another.
  await rejection(locks.acquire(freshName(), { timeout: 1 }));
  const held = await waiting;
  const renewals = () => proxy.requests.filter(isKeepAlive).length;
  const before = renewals();
  // Each of the two leases is then kept alive for more than its TTL.
  await until(renewals, (count) => count >= before + 8);
  expect(await entriesBelow(`/_locks/${name}/`)).toMatchObject([{ key: held.key }]);
  held.assertHeld();
  other.assertHeld();
  expect([await held.release(), await other.release()]).toEqual([true, true]);
  await client.close();
  expect(await leasesOf(proxy.requests)).toEqual([]);
});

// No request is sent again because the machine is busy, and no keep-alive is due before the test says so.
describe('on a clock that passes only when the test advances it', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test('a cycle of a warm client is two requests', async () => {
    const { name, locks, proxy } = await setUp(() => false);
    await locks.request(name, () => undefined);
    const before = proxy.requests.length;
    for (let i = 0; i < 10; i += 1) await locks.request(name, () => undefined);
    expect(proxy.requests.slice(before).map(({ path }) => path)).toEqual(
      Array(10).fill(['/v3/kv/txn', '/v3/kv/deleterange']).flat(),
    );
  });

  test('many holds cost one keep-alive and one read for each third of the TTL', async () => {
    const { name, locks, proxy } = await setUp(() => false);
    const holds = await Promise.all(Array.from({ length: 50 }, (_, i) => locks.acquire(`${name}-${i}`, { ttl: 60 })));
    const start = performance.now();
    const first = proxy.requests.length;
    const since = () => proxy.requests.slice(first);
    for (let third = 1; third <= 3; third += 1) {
      while (since().filter(isKeepAlive).length < third) {
        await until(
          () => [...proxy.open].filter(({ path }) => path !== '/v3/watch'),
          ({ length }) => length === 0,
        );
        await vi.advanceTimersByTimeAsync(50);
      }
      expect(performance.now() - start).toBeGreaterThan(third * 20_000 - 500);
    }
    expect(since().filter(isKeepAlive)).toHaveLength(3);
    // Each watch of held entries begins with a read of its own, and begins again after 20 seconds without an event.
    const watches = since().filter(({ path }) => path === '/v3/watch').length;
    expect(since().filter(({ path }) => path === '/v3/kv/txn').length).toBeLessThanOrEqual(3 + watches + 4);
    for (const held of holds) held.assertHeld();
    await Promise.all(holds.map((held) => held.release()));
  });
});
