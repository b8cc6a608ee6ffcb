import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { type EtcdctlLock, lockByEtcdctl } from '../support/etcdctl.mjs';
import { entriesBelow } from '../support/gateway.ts';
import { freshName } from '../support/locks.ts';
import { until } from '../support/until.ts';

function useV3(): { client: V3Client; locks: LockManager } {
  const client = new V3Client({ endpoints: inject('etcd') });
  onTestFinished(() => client.close());
  return { client, locks: new LockManager(client, { ttl: 30 }) };
}

/** Holds the lock by `etcdctl lock`, which is Go's Mutex, as soon as it can, until `release`. The end of the test kills it. */
function byEtcdctl(name: string): EtcdctlLock {
  const go = lockByEtcdctl(`/_locks/${name}`, { endpoints: [inject('etcd')], ttl: 10 });
  onTestFinished(() => go.kill());
  return go;
}

const untilQueued = (name: string, count: number) =>
  until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === count,
  );

test('LockManager and `etcdctl lock` wait for each other, in the order in which they came, with growing tokens', async () => {
  const name = freshName();
  const [{ locks }, { locks: others }] = [useV3(), useV3()];
  const tokens: bigint[] = [];
  const first = await locks.acquire(name);
  tokens.push(first.fencingToken);
  const go = byEtcdctl(name);
  await untilQueued(name, 2);
  const order: string[] = [];
  const last = others.acquire(name).then((held) => {
    order.push('LockManager');
    return held;
  });
  await untilQueued(name, 3);
  void go.held.then(() => order.push('etcdctl'));
  await first.release();
  tokens.push((await go.held).token);
  expect(order).toEqual(['etcdctl']);
  await go.release();
  const held = await last;
  tokens.push(held.fencingToken);
  await held.release();
  expect(order).toEqual(['etcdctl', 'LockManager']);
  expect(tokens.toSorted((a, b) => Number(a - b))).toEqual(tokens);
  expect(new Set(tokens).size).toBe(3);
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
});

test('`etcdctl lock` gets the lock between two requests of one process', async () => {
  const name = freshName();
  const { locks } = useV3();
  const first = await locks.acquire(name);
  const tokens = [first.fencingToken];
  const waiting = locks.acquire(name);
  const go = byEtcdctl(name);
  await untilQueued(name, 2);
  expect(await first.release()).toBe(true);
  tokens.push((await go.held).token);
  await untilQueued(name, 2);
  await go.release();
  const held = await waiting;
  tokens.push(held.fencingToken);
  expect(tokens.toSorted((a, b) => Number(a - b))).toEqual(tokens);
  expect(new Set(tokens).size).toBe(3);
  expect(await held.release()).toBe(true);
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
});

test('a killed `etcdctl lock` frees the lock after its lease', async () => {
  const name = freshName();
  const { locks } = useV3();
  const go = byEtcdctl(name);
  const { token } = await go.held;
  const waiting = locks.acquire(name);
  await untilQueued(name, 2);
  go.kill();
  const held = await waiting;
  expect(held.fencingToken).toBeGreaterThan(token);
  expect(await held.release()).toBe(true);
});

test('a request with ifAvailable finds the lock of `etcdctl lock` taken, and leaves no key', async () => {
  const name = freshName();
  const { locks } = useV3();
  const go = byEtcdctl(name);
  await go.held;
  expect(await locks.request(name, { ifAvailable: true }, (held) => held)).toBe(null);
  expect(await entriesBelow(`/_locks/${name}/`)).toHaveLength(1);
  await go.release();
});
