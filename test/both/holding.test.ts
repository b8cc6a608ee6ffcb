import { beforeEach, describe, expect, inject, test, vi } from 'vitest';
import { sleep } from '../../src/base/cancellation.ts';
import type { StoreApi } from '../../src/client.ts';
import { EtcdLockExpired, EtcdLockLost } from '../../src/errors.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { Lock } from '../../src/python/lock.ts';
import type { FencingTokens } from '../../src/recipe/store.ts';
import { aborted } from '../suites/lock/locks.ts';
import { keysOf, untilKeys, useEtcdClient } from '../support/both.ts';
import { base64, gateway } from '../support/gateway.ts';
import { freshName, raw, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';

/** Each request by its method on v2, and by its path on v3. */
const kindOf = ({ method, path }: ProxiedRequest): string =>
  path.startsWith('/v3/') ? path.slice('/v3/'.length) : method;

test('a lock is held in both stores, and is released in both', async () => {
  const name = freshName();
  const held = await new LockManager(useEtcdClient()).acquire(name);
  const { v2, v3 } = await keysOf(name);
  expect(v2).toEqual([held.key]);
  expect(v3).toHaveLength(1);
  expect(await held.release()).toBe(true);
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

describe('on a clock that stands still', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    return () => vi.useRealTimers();
  });

  test('a cycle of a warm client is the requests of v2, and those of v3 inside', async () => {
    const name = freshName();
    const proxy = await useProxy();
    const locks = new LockManager(useEtcdClient({ endpoints: proxy.url }));
    await locks.request(name, () => undefined);
    const before = proxy.requests.length;
    for (let i = 0; i < 10; i += 1) await locks.request(name, () => undefined);
    expect(proxy.requests.slice(before).map(kindOf)).toEqual(
      Array(10).fill(['POST', 'GET', 'kv/txn', 'kv/deleterange', 'DELETE']).flat(),
    );
  });
});

test.each<StoreApi>(['v2', 'v3'])(
  'a client of %s waits for the hold, and the next hold waits for that client',
  async (api) => {
    const name = freshName();
    const both = new LockManager(useEtcdClient(), { ttl: 60 });
    const one = new LockManager(useEtcdClient({ api }), { ttl: 60 });
    const order: string[] = [];
    const first = await both.acquire(name);
    const second = one.acquire(name).then((held) => {
      order.push(api);
      return held;
    });
    await untilKeys(name, api === 'v2' ? 2 : 1, api === 'v3' ? 2 : 1);
    expect(await one.acquire(name, { ifAvailable: true })).toBeNull();
    await first.release();
    const other = await second;
    expect(await both.acquire(name, { ifAvailable: true })).toBeNull();
    const third = both.acquire(name).then((held) => {
      order.push('both');
      return held;
    });
    await untilKeys(name, api === 'v2' ? 2 : 1, api === 'v3' ? 2 : 0);
    order.push('released');
    await other.release();
    await (await third).release();
    expect(order).toEqual([api, 'released', 'both']);
    expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
  },
);

test('nobody who waits on v2 has an entry on v3', async () => {
  const name = freshName();
  const [a, b] = [new LockManager(useEtcdClient()), new LockManager(useEtcdClient())];
  const first = await a.acquire(name);
  const next = b.acquire(name);
  await untilKeys(name, 2, 1);
  await first.release();
  await (await next).release();
});

test('a hold lasts no longer than the lease of its entry on v3, which may be older than the entry', async () => {
  const name = freshName();
  const locks = new LockManager(useEtcdClient(), { ttl: 60, margin: 1 });
  const first = await locks.acquire(`${name}-1`);
  await sleep(1500);
  const second = await locks.acquire(`${name}-2`);
  expect(second.expiresIn()).toBeLessThan(57.6);
  await Promise.all([first.release(), second.release()]);
});

describe('a hold is lost', () => {
  test('soon after its entry on v3 was removed', async () => {
    const name = freshName();
    const held = await new LockManager(useEtcdClient(), { ttl: 60 }).acquire(name);
    const [key = ''] = (await keysOf(name)).v3;
    await gateway('/kv/deleterange', { key: base64(key) }, inject('etcd'));
    const reason = await aborted(held.signal);
    expect(reason).toBeInstanceOf(EtcdLockLost);
    expect((reason as Error).message).toContain(key);
    expect(await held.release()).toBe(false);
    expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
  });

  test('when a renewal finds its entry on v2 gone', async () => {
    const name = freshName();
    const held = await new LockManager(useEtcdClient(), { ttl: 3 }).acquire(name);
    await raw('DELETE', held.key);
    expect(await aborted(held.signal)).toBeInstanceOf(EtcdLockLost);
    expect(await held.release()).toBe(false);
    expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
  });

  test('when v3 does not answer its renewals, although v2 does', async () => {
    const name = freshName();
    const proxy = await useProxy();
    const held = await new LockManager(useEtcdClient({ endpoints: proxy.url }), { ttl: 3 }).acquire(name);
    proxy.intercept(({ path }) => (path.startsWith('/v3/') ? { silent: true } : undefined));
    const reason = await aborted(held.signal);
    expect(reason).toBeInstanceOf(EtcdLockLost);
    expect((reason as Error).message).toContain('not renewed in time');
    await held.release();
  });
});

test('a Lock sees by isAcquired() that its entry on v3 is gone', async () => {
  const name = freshName();
  const lock = new Lock(useEtcdClient(), name);
  await lock.acquire({ lockTtl: 60 });
  expect(await lock.isAcquired()).toBe(true);
  const [key = ''] = (await keysOf(name)).v3;
  await gateway('/kv/deleterange', { key: base64(key) }, inject('etcd'));
  expect(await lock.isAcquired()).toBe(false);
  expect(lock.isTaken).toBe(false);
  await lock.release();
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('a Lock that acquires again after it has lost its entry on v3 queues up at the end of both queues', async () => {
  const name = freshName();
  const lock = new Lock(useEtcdClient(), name);
  const other = new LockManager(useEtcdClient());
  await lock.acquire({ lockTtl: 60 });
  const { signal, fencingToken } = lock;
  const next = other.acquire(name);
  await untilKeys(name, 2, 1);
  const [key = ''] = (await keysOf(name)).v3;
  await gateway('/kv/deleterange', { key: base64(key) }, inject('etcd'));
  const again = lock.acquire({ lockTtl: 60 });
  await (await next).release();
  expect(await again).toBe(true);
  expect(signal.reason).toBeInstanceOf(EtcdLockExpired);
  expect(lock.fencingToken).toBeGreaterThan(fencingToken);
  await lock.release();
});

test('a hold has the tokens of both stores, of which each grows, whoever held the lock before', async () => {
  const name = freshName();
  const tokens: FencingTokens[] = [];
  for (const api of ['v2', 'both', 'both', 'v3', 'both', 'v2', 'both', 'v3'] as const) {
    const locks = new LockManager(useEtcdClient({ api }));
    await locks.request(name, ({ fencingToken, fencingTokens }) => {
      tokens.push(fencingTokens);
      expect(fencingToken).toBe(fencingTokens[api === 'v3' ? 'v3' : 'v2']);
      expect(Object.keys(fencingTokens)).toEqual(api === 'both' ? ['v2', 'v3'] : [api]);
    });
  }
  for (const store of ['v2', 'v3'] as const) {
    const all = tokens.flatMap(({ [store]: token }) => token ?? []);
    expect(all.toSorted((a, b) => Number(a - b))).toEqual(all);
    expect(new Set(all).size).toBe(6);
  }
});
