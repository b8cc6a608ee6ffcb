import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import type { Held, LockMode } from '../src/index.ts';
import { gate } from '../test/support/gate.ts';
import { freshName, queueOn, untilQueued, useProxy } from '../test/support/locks.ts';
import { useManager } from '../test/support/managers.ts';
import { until } from '../test/support/until.ts';
import { type Python, type PythonLock, startPython } from './python.ts';

let python: Python;

beforeAll(async () => {
  python = await startPython(inject('etcd'));
});

afterAll(() => python.stop());

/** A python-etcd lock and two managers that share nothing, as in separate processes. */
async function setUp() {
  const name = freshName();
  return { name, theirs: await python.lock(name), first: useManager({ ttl: 60 }), second: useManager({ ttl: 60 }) };
}

const MODES: readonly LockMode[] = ['exclusive', 'shared'];

const isTaken = async (lock: PythonLock): Promise<boolean> => (await lock.state()).isTaken;

describe.each(MODES)('a request (%s) for a lock that python-etcd holds', (mode) => {
  test('runs its callback when the holder releases the lock, and not before', async () => {
    const { name, theirs, first } = await setUp();
    await theirs.acquire({ lockTtl: 60 });
    const ran: Held[] = [];
    const request = first.request(name, { mode }, async (held) => {
      ran.push(held);
      return queueOn(name);
    });
    await untilQueued(name, 2);
    expect(await theirs.isAcquired()).toBe(true);
    expect(ran).toEqual([]);
    await theirs.release();
    expect(await request).toMatchObject([{ key: ran[0]?.key }]);
    expect(await queueOn(name)).toEqual([]);
  });

  test('gets null with ifAvailable and leaves no key', async () => {
    const { name, theirs, first } = await setUp();
    await theirs.acquire({ lockTtl: 60 });
    expect(await first.request(name, { mode, ifAvailable: true }, (held) => held)).toBeNull();
    const { uuid, lockKey } = await theirs.state();
    expect(await queueOn(name)).toMatchObject([{ key: lockKey, value: uuid }]);
    await theirs.release();
  });

  test('gets the lock when the holder key expires', async () => {
    const { name, theirs, first } = await setUp();
    await theirs.acquire({ lockTtl: 3 });
    const held = await first.acquire(name, { mode });
    expect(await theirs.isAcquired()).toBe(false);
    expect(await queueOn(name)).toMatchObject([{ key: held.key }]);
    expect(await held.release()).toBe(true);
  });
});

describe.each(MODES)('a hold (%s) with a python-etcd waiter', (mode) => {
  test('passes the lock to the waiter on release, and not before, although renewed beyond its TTL', async () => {
    const { name, theirs } = await setUp();
    const held = await useManager({ ttl: 8 }).acquire(name, { mode });
    const waiting = theirs.acquire({ lockTtl: 60 });
    const [own] = await untilQueued(name, 2);
    // Four renewals, each after a third of the TTL.
    await until(
      () => queueOn(name),
      ([entry]) => (entry?.modifiedIndex ?? 0) >= (own?.modifiedIndex ?? 0) + 4,
    );
    held.assertHeld();
    expect(await isTaken(theirs)).toBe(false);
    expect(await held.release()).toBe(true);
    expect(await waiting).toBe(true);
    await theirs.release();
  });
});

describe('readers and a python-etcd lock', () => {
  test.each([
    ['first', 'last'],
    ['last', 'first'],
  ])(
    'the python-etcd lock waits for all readers before it, when the %s one to arrive is released first',
    async (order) => {
      const proxy = await useProxy();
      const behindProxy = await startPython(proxy.url);
      onTestFinished(() => behindProxy.stop());
      const { name, first, second } = await setUp();
      const theirs = await behindProxy.lock(name);
      const readers = [await first.acquire(name, { mode: 'shared' }), await second.acquire(name, { mode: 'shared' })];
      const waiting = theirs.acquire({ lockTtl: 60 });
      await untilQueued(name, 3);
      const [one, other] = order === 'first' ? readers : readers.reverse();
      await one?.release();
      await until(
        () => [...proxy.open].find(({ path, query }) => query.has('wait') && path.endsWith(other?.key ?? '')),
        (watch) => watch !== undefined,
      );
      expect(await isTaken(theirs)).toBe(false);
      other?.assertHeld();
      await other?.release();
      expect(await waiting).toBe(true);
      await theirs.release();
      expect(await queueOn(name)).toEqual([]);
    },
  );

  test('readers that arrive after a python-etcd waiter wait for it, then run together', async () => {
    const { name, theirs, first, second } = await setUp();
    const early = await first.acquire(name, { mode: 'shared' });
    const waiting = theirs.acquire({ lockTtl: 60 });
    await untilQueued(name, 2);
    const bothIn = gate();
    let inside = 0;
    const late = [first, second].map((locks) =>
      locks.request(name, { mode: 'shared' }, async () => {
        // Not by `isTaken`: the Python process may not have received the answer to its release yet.
        expect((await queueOn(name)).every(({ value }) => value.startsWith('shared:'))).toBe(true);
        inside += 1;
        if (inside === 2) bothIn.open();
        await bothIn.opened;
      }),
    );
    await untilQueued(name, 4);
    await early.release();
    expect(await waiting).toBe(true);
    expect(inside).toBe(0);
    await theirs.release();
    await Promise.all(late);
    expect(await queueOn(name)).toEqual([]);
  });
});

test('query() reports python-etcd holders and waiters in the order of the queue', async () => {
  const { name, theirs, first, second } = await setUp();
  const another = await python.lock(name);
  await theirs.acquire({ lockTtl: 60 });
  const shared = first.request(name, { mode: 'shared' }, () => {});
  await untilQueued(name, 2);
  const waiting = another.acquire({ lockTtl: 60 });
  await untilQueued(name, 3);
  const [mine, others] = [await theirs.state(), await another.state()];
  expect(await second.query(name)).toMatchObject({
    held: [{ name, mode: 'exclusive', uuid: mine.uuid, key: mine.lockKey, ttl: expect.any(Number) }],
    pending: [
      { name, mode: 'shared', ttl: expect.any(Number) },
      { name, mode: 'exclusive', uuid: others.uuid, ttl: expect.any(Number) },
    ],
  });
  await theirs.release();
  await shared;
  expect(await waiting).toBe(true);
  await another.release();
});

test('contenders of both languages get the lock in the order of arrival', async () => {
  const { name, theirs, first, second } = await setUp();
  const order: string[] = [];
  const holder = await first.acquire(name);
  const python1 = theirs.hold({ lockTtl: 60 });
  await untilQueued(name, 2);
  const node = second.request(name, () => {
    order.push('node');
  });
  await untilQueued(name, 3);
  const another = await python.lock(name);
  const python2 = another.hold({ lockTtl: 60 });
  await untilQueued(name, 4);
  await holder.release();
  const { released } = await python1;
  order.push('python 1');
  expect(await isTaken(another)).toBe(false);
  await theirs.release();
  await released;
  await node;
  const second2 = await python2;
  order.push('python 2');
  await another.release();
  await second2.released;
  expect(order).toEqual(['python 1', 'node', 'python 2']);
  expect(await queueOn(name)).toEqual([]);
});
