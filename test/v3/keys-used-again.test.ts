import { expect, inject, onTestFinished, test } from 'vitest';
import type { Held } from '../../src/manager/held.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { SINGLE_USE_KEYS } from '../../src/v3/locks/entry-keys.ts';
import { gate } from '../support/gate.ts';
import { base64, entriesBelow, gateway } from '../support/gateway.ts';
import { freshName, useProxy } from '../support/locks.ts';
import { first } from '../support/lost-requests.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { useStillClock } from '../support/still-clock.ts';
import { until } from '../support/until.ts';

/** Seconds. A client looks for copies of its appends once in that time. */
const TTL = 9;

const isAppend = ({ path, body }: ProxiedRequest): boolean => path.endsWith('/kv/txn') && body.includes('request_put');
const isRemoval = ({ body }: ProxiedRequest): boolean => body.includes('request_delete_range');

function useLocks(endpoints = inject('etcd')): LockManager {
  const client = new V3Client({ endpoints });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return new LockManager(client, { ttl: TTL });
}

/** A client behind a proxy, and a lock in whose queue it has created all keys that serve once. */
async function setUp() {
  const [proxy, name] = [await useProxy(), freshName()];
  const locks = useLocks(proxy.url);
  const keyOf = () => locks.request(name, ({ key }) => key);
  const keys = await Promise.all(Array.from({ length: SINGLE_USE_KEYS }, keyOf));
  expect(new Set(keys).size).toBe(SINGLE_USE_KEYS);
  return { proxy, name, locks, keyOf, entries: () => entriesBelow(`/_locks/${name}/`) };
}

/** Expects that the lock is held, and that no other client gets it. */
async function expectHeld(held: { assertHeld(): void }, name: string): Promise<void> {
  expect(await useLocks().acquire(name, { ifAvailable: true })).toBe(null);
  held.assertHeld();
}

test('a client that acquires a lock often uses one key again and again, with two requests and a greater token each time', async () => {
  useStillClock();
  const { proxy, locks, name, entries } = await setUp();
  const before = proxy.requests.length;
  const holds: Pick<Held, 'key' | 'fencingToken'>[] = [];
  for (let i = 0; i < 20; i += 1) holds.push(await locks.request(name, (held) => held));
  expect(proxy.requests.slice(before).map(({ path }) => path)).toEqual(Array(40).fill('/v3/kv/txn'));
  expect(new Set(holds.map(({ key }) => key)).size).toBe(1);
  const tokens = holds.map(({ fencingToken }) => fencingToken);
  expect(tokens.toSorted((one, other) => Number(one - other))).toEqual(tokens);
  expect(new Set(tokens).size).toBe(20);
  expect(await entries()).toEqual([]);
});

test('requests that follow each other at once use two keys in turn', async () => {
  const { keyOf } = await setUp();
  const keys = await Promise.all(Array.from({ length: 20 }, keyOf));
  expect(new Set(keys).size).toBe(2);
  for (const [i, key] of keys.entries()) expect(key).not.toBe(keys[i + 1]);
});

test('shared holds at the same time have a key each, which later holds use again', async () => {
  useStillClock();
  const { locks, name } = await setUp();
  const holdAll = async (): Promise<ReadonlySet<string>> => {
    const holds = await Promise.all(Array.from({ length: 64 }, () => locks.acquire(name, { mode: 'shared' })));
    const keys = new Set(holds.map(({ key }) => key));
    expect(keys.size).toBe(64);
    await Promise.all(holds.map((held) => held.release()));
    return keys;
  };
  expect(await holdAll()).toEqual(await holdAll());
});

test('a removal that is carried out late does not remove the next entry of its key', async () => {
  const { proxy, name, locks, keyOf } = await setUp();
  const late = gate();
  proxy.intercept(first(1, isRemoval, { hold: late.opened, cut: true }));
  const key = await keyOf();
  const held = await locks.acquire(name);
  expect(held.key).toBe(key);
  const answered = proxy.next(isRemoval, 'answered');
  late.open();
  await answered;
  await expectHeld(held, name);
  expect(await held.release()).toBe(true);
});

test('a key whose entry was removed in the background is used again', async () => {
  const { proxy, name, locks, keyOf, entries } = await setUp();
  const key = await keyOf();
  const allow = proxy.intercept((request) => (isRemoval(request) ? { refuse: true } : undefined));
  await locks.request(name, () => undefined).catch(() => {});
  allow();
  await until(entries, ({ length }) => length === 0);
  // The client may not know yet that the key is free. Two holds at once use both keys that it then has.
  const keysOfTwo = async (): Promise<string[]> => {
    const holds = await Promise.all([1, 2].map(() => locks.acquire(name, { mode: 'shared' })));
    await Promise.all(holds.map((held) => held.release()));
    return holds.map((held) => held.key);
  };
  await until(keysOfTwo, (keys) => keys.includes(key));
});

test('the key of an append that was not answered is not used again', async () => {
  const { proxy, locks, name, keyOf, entries } = await setUp();
  const late = gate();
  proxy.intercept(first(1, isAppend, { hold: late.opened, cut: true }));
  const key = await keyOf();
  expect(await keyOf()).not.toBe(key);
  const answered = proxy.next(isAppend, 'answered');
  late.open();
  await answered;
  await until(entries, ({ length }) => length === 0);
  expect(await locks.request(name, (held) => held.key)).not.toBe(key);
});

test('a key is not used again if another cluster has answered its removal', async () => {
  const { proxy, keyOf, entries } = await setUp();
  const late = gate();
  const header = { cluster_id: '17', member_id: '1', revision: '1', raft_term: '2' };
  const isCheck = ({ path }: ProxiedRequest): boolean => path.endsWith('/kv/range');
  proxy.intercept(first(1, isRemoval, { late: late.opened, status: 200, body: { header } }));
  proxy.intercept(first(1, isCheck, { late: late.opened, status: 200, body: { header } }));
  const key = await keyOf();
  expect(await entries()).toMatchObject([{ key }]);
  late.open();
  await until(entries, ({ length }) => length === 0);
  expect(await keyOf()).not.toBe(key);
});

test('if a proxy carries out an append once more, the next request takes another key and waits until the copy is gone', async () => {
  const { locks, name, entries } = await setUp();
  const { key, uuid } = await locks.request(name, (held) => held);
  const other = await locks.acquire(freshName());
  const [{ lease } = expect.unreachable()] = (await gateway('/kv/range', { key: base64(other.key) })).kvs ?? [];
  await gateway('/kv/put', { key: base64(key), value: base64(uuid), lease });
  const waiting = locks.acquire(name);
  await until(entries, ({ length }) => length === 2);
  expect(await entries()).toMatchObject([{ key, value: uuid }, { key: expect.not.stringMatching(key) }]);
  const held = await waiting;
  expect(held.key).not.toBe(key);
  await expectHeld(held, name);
});

test('a waiter of another client gets the lock before the next entry of the key it waited for', async () => {
  const { locks, name, entries } = await setUp();
  const held = await locks.acquire(name);
  const order: string[] = [];
  const other = useLocks().request(name, () => order.push('other'));
  await until(entries, ({ length }) => length === 2);
  await held.release();
  await locks.request(name, ({ key }) => {
    expect(key).toBe(held.key);
    order.push('own');
  });
  await other;
  expect(order).toEqual(['other', 'own']);
});
