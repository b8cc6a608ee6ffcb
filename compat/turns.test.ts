import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { EtcdLockExpired, Lock } from '../src/index.ts';
import { freshName, queueOn, rejection, untilQueued, useClient, useProxy } from '../test/support/locks.ts';
import type { EtcdProxy } from '../test/support/proxy.ts';
import { until } from '../test/support/until.ts';
import { type Python, startPython } from './python.ts';
import { BOTH_WAYS, lockOn, type Side } from './sides.ts';

/** Seconds: long enough for a busy machine to finish its steps before the key expires. */
const SHORT_TTL = 3;

let python: Python;

beforeAll(async () => {
  python = await startPython(inject('etcd'));
});

afterAll(() => python.stop());

/** Two locks with the same name. */
async function pair(one: Side, other: Side) {
  const name = freshName();
  return { name, holder: await lockOn(one, python, name), waiter: await lockOn(other, python, name) };
}

/**
 * Waits until a poll through the proxy has begun to wait. At a bridge to etcd v3, a renewal between a read of the queue and the poll
 * after it ends that poll at once: before a later request is answered.
 */
async function untilPolling(proxy: EtcdProxy, name: string): Promise<void> {
  const begun = () => [...proxy.open].find(({ query, status }) => query.get('wait') === 'true' && status !== undefined);
  await until(
    async () => {
      const poll = begun();
      await queueOn(name);
      return poll !== undefined && proxy.open.has(poll);
    },
    (isWaiting) => isWaiting,
  );
}

describe.each(BOTH_WAYS)('with a %s holder and a %s waiter', (one, other) => {
  test('the waiter gets the lock when the holder releases it, and not before', async () => {
    const { name, holder, waiter } = await pair(one, other);
    expect(await holder.acquire({ lockTtl: 60 })).toBe(true);
    const waiting = waiter.acquire({ lockTtl: 60 });
    const queue = await untilQueued(name, 2);
    expect(queue.map(({ value }) => value)).toEqual([(await holder.state()).uuid, (await waiter.state()).uuid]);
    expect(await holder.isAcquired()).toBe(true);
    expect(await waiter.state()).toMatchObject({ isTaken: false });
    await holder.release();
    expect(await waiting).toBe(true);
    expect(await waiter.isAcquired()).toBe(true);
    await waiter.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('a renewal by the holder does not hand the lock over', async () => {
    const { name, holder, waiter } = await pair(one, other);
    await holder.acquire({ lockTtl: 60 });
    const waiting = waiter.acquire({ lockTtl: 60 });
    await untilQueued(name, 2);
    for (const lockTtl of [70, 80, 90]) expect(await holder.acquire({ lockTtl })).toBe(true);
    const { lockKey, uuid } = await holder.state();
    const [first, second] = await untilQueued(name, 2);
    expect(first).toMatchObject({ key: lockKey, value: uuid });
    expect(first?.ttl).toBeGreaterThan(80);
    expect(await waiter.state()).toMatchObject({ uuid: second?.value, isTaken: false });
    await holder.release();
    expect(await waiting).toBe(true);
    await waiter.release();
  });

  test('a non-blocking waiter keeps its entry, and its next call renews the entry', async () => {
    const { name, holder, waiter } = await pair(one, other);
    await holder.acquire({ lockTtl: 60 });
    expect(await waiter.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    const { lockKey, uuid } = await waiter.state();
    expect((await queueOn(name))[1]).toMatchObject({ key: lockKey, value: uuid });
    expect(await waiter.acquire({ blocking: false, lockTtl: 90 })).toBe(false);
    const [, renewed, ...others] = await queueOn(name);
    expect(renewed).toMatchObject({ key: lockKey, value: uuid });
    expect(renewed?.ttl).toBeGreaterThan(60);
    expect(others).toEqual([]);
    await holder.release();
    expect(await waiter.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    expect(await waiter.state()).toMatchObject({ isTaken: true, lockKey });
    await waiter.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('the waiter gets the lock when the holder key expires, and a late release by that holder changes nothing', async () => {
    const { name, holder, waiter } = await pair(one, other);
    expect(await holder.acquire({ lockTtl: SHORT_TTL })).toBe(true);
    expect(await waiter.acquire({ lockTtl: 60 })).toBe(true);
    expect(await holder.isAcquired()).toBe(false);
    const { uuid } = await waiter.state();
    expect(await queueOn(name)).toMatchObject([{ value: uuid }]);
    await holder.release();
    expect(await queueOn(name)).toMatchObject([{ value: uuid }]);
    expect(await waiter.isAcquired()).toBe(true);
    await waiter.release();
  });
});

test('four Node and four Python contenders, alternating, get the lock in the order of arrival', async () => {
  const name = freshName();
  const arrivals = (['Node', 'Python', 'Node', 'Python', 'Node', 'Python', 'Node', 'Python'] as const).map(
    (side, index) => ({ side, title: `${side} ${index + 1}` }),
  );
  const uuids: string[] = [];
  const turns: string[] = [];
  const done: Promise<void>[] = [];
  const opener = await lockOn('Python', python, name);
  await opener.acquire({ lockTtl: 60 });
  for (const { side, title } of arrivals) {
    const lock = await lockOn(side, python, name);
    uuids.push((await lock.state()).uuid);
    const turn = async () => {
      expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
      turns.push(title);
      await lock.release();
    };
    done.push(turn());
    await untilQueued(name, done.length + 1);
  }
  expect((await queueOn(name)).slice(1).map(({ value }) => value)).toEqual(uuids);
  expect(turns).toEqual([]);
  await opener.release();
  await Promise.all(done);
  expect(turns).toEqual(arrivals.map(({ title }) => title));
  expect(await queueOn(name)).toEqual([]);
});

test('a Node holder with keepAlive outlives its TTL, and its renewals do not wake a Python waiter', async () => {
  const name = freshName();
  const proxy = await useProxy();
  const behindProxy = await startPython(proxy.url);
  try {
    const holder = new Lock(useClient(), name);
    // The first requests of a client take longest.
    await holder.acquire({ lockTtl: 60 });
    await holder.acquire({ lockTtl: 5, keepAlive: true });
    const waiter = await behindProxy.lock(name);
    const waiting = waiter.acquire({ lockTtl: 60 });
    await untilPolling(proxy, name);
    const before = proxy.requests.length;
    const [first] = await untilQueued(name, 2);
    const expiry = Date.parse(first?.expiration ?? '');
    // A whole TTL past the moment at which the key would have expired.
    const later = await until(
      () => queueOn(name),
      () => Date.now() > expiry + 5_000,
    );
    expect(later).toMatchObject([{ key: holder.lockKey, value: holder.uuid }, { value: (await waiter.state()).uuid }]);
    expect(await holder.isAcquired()).toBe(true);
    expect(await waiter.state()).toMatchObject({ isTaken: false });
    expect(proxy.requests).toHaveLength(before);
    await holder.release();
    expect(await waiting).toBe(true);
    await waiter.release();
  } finally {
    await behindProxy.stop();
  }
});

describe('a waiter whose key expired', () => {
  test('gets EtcdLockExpired in Node, while a Python holder still has the lock', async () => {
    const name = freshName();
    const holder = await lockOn('Python', python, name);
    await holder.acquire({ lockTtl: 60 });
    const { lockKey, uuid } = await holder.state();
    const error = await rejection(new Lock(useClient(), name).acquire({ lockTtl: SHORT_TTL }));
    expect(error).toBeInstanceOf(EtcdLockExpired);
    expect(error).toMatchObject({ holder: { key: lockKey, value: uuid } });
    expect(await queueOn(name)).toMatchObject([{ value: uuid }]);
    await holder.release();
  });

  test('gets EtcdLockExpired in Python when the Node holder releases', async () => {
    const { name, holder, waiter } = await pair('Node', 'Python');
    await holder.acquire({ lockTtl: 60 });
    const waiting = rejection(waiter.acquire({ lockTtl: SHORT_TTL }));
    await untilQueued(name, 2);
    await untilQueued(name, 1);
    expect(await holder.isAcquired()).toBe(true);
    await holder.release();
    expect(await waiting).toMatchObject({ name: 'PythonError', type: 'EtcdLockExpired' });
    expect(await queueOn(name)).toEqual([]);
  });
});

test('renewing a held lock with a TTL of null keeps the old TTL in Python and removes it in Node', async () => {
  const left: Record<string, number | undefined> = {};
  for (const side of ['Python', 'Node'] as const) {
    const name = freshName();
    const lock = await lockOn(side, python, name);
    await lock.acquire({ lockTtl: 60 });
    expect(await lock.acquire({ lockTtl: null })).toBe(true);
    const [entry] = await queueOn(name);
    left[side] = entry?.ttl;
    await lock.release();
  }
  expect(left).toEqual({ Python: expect.any(Number), Node: undefined });
});
