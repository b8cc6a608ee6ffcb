// Unchanged python-etcd through bridges, in one queue with clients of etcd v3.
import { expect, inject, test } from 'vitest';
import { Lock } from '../../../../src/python/lock.ts';
import { useBridges } from '../../../support/bridge-process.ts';
import { entriesBelow } from '../../../support/gateway.ts';
import { freshName } from '../../../support/locks.ts';
import { until } from '../../../support/until.ts';
import { byEtcdctl, expectOneCounter, FOREIGN_CYCLES, rankIn } from '../one-counter.ts';
import { useBridge, useLocks, usePython, useV3 } from '../use-bridge.ts';

const queue = (name: string) => entriesBelow(`/_locks/${name}/`);
const untilQueued = (name: string, count: number) =>
  until(
    () => queue(name),
    ({ length }) => length === count,
  );

test('400 cycles of python-etcd and Node through two bridges, and of Node and etcdctl on etcd v3, lose no update', async () => {
  const etcd = inject('etcd');
  await expectOneCounter(etcd, [byEtcdctl(etcd, FOREIGN_CYCLES)]);
});

test('a lock goes from python-etcd to Node on etcd v3 and back, in the order in which they came', async () => {
  const name = freshName();
  const { url } = await useBridge();
  const python = await usePython(url);
  const [first, third] = [await python.lock(name), await python.lock(name)];
  const order: string[] = [];
  await first.acquire({ lockTtl: 60 });
  const second = useLocks('v3').request(name, async () => void order.push('Node'));
  await untilQueued(name, 2);
  const waiting = third.acquire({ lockTtl: 60 }).then(() => void order.push('python-etcd'));
  await untilQueued(name, 3);
  expect(await first.isAcquired()).toBe(true);
  await first.release();
  await second;
  await waiting;
  expect(order).toEqual(['Node', 'python-etcd']);
  await third.release();
  expect(await queue(name)).toEqual([]);
});

test('python-etcd adopts the entry of a Lock on etcd v3 by its uuid, and releases it', async () => {
  const name = freshName();
  const lock = new Lock(useV3(), name);
  await lock.acquire({ lockTtl: 60 });
  const { url } = await useBridge();
  const python = await (await usePython(url)).lock(name);
  await python.setUuid(lock.uuid);
  expect(await python.acquire({ lockTtl: 60 })).toBe(true);
  expect(await queue(name)).toMatchObject([{ value: lock.uuid }]);
  await python.release();
  expect(await queue(name)).toEqual([]);
});

test('python-etcd gets EtcdLockExpired if its entry expires while it waits', async () => {
  const name = freshName();
  const held = await useLocks('v3').acquire(name);
  const { url } = await useBridge();
  const python = await (await usePython(url)).lock(name);
  const waiting = python.acquire({ lockTtl: 6 }).catch(String);
  await untilQueued(name, 2);
  await untilQueued(name, 1);
  await held.release();
  expect(await waiting).toContain('EtcdLockExpired');
  expect(await queue(name)).toEqual([]);
});

test('a bridge is killed: python-etcd continues to wait at another one, and releases there', async () => {
  const [one] = await useBridges([[inject('etcd')], [inject('etcd')]]);
  if (!one) throw new Error('no bridge');
  const [holding, waiting] = [freshName(), freshName()];
  const python = await usePython(one.url, { allowReconnect: true, readTimeout: 3600 });
  const [holder, waiter] = [await python.lock(holding), await python.lock(waiting)];
  const first = await useLocks('v3').acquire(waiting);
  await holder.acquire({ lockTtl: 60 });
  const acquired = waiter.acquire({ lockTtl: 60 });
  await untilQueued(waiting, 2);
  const next = useLocks('v3').acquire(holding);
  await untilQueued(holding, 2);
  one.kill();
  await first.release();
  expect(await acquired).toBe(true);
  await holder.release();
  await (await next).release();
  await waiter.release();
  expect([...(await queue(holding)), ...(await queue(waiting))]).toEqual([]);
});

test('a bridge that stops cuts off those who wait, and leaves their entries', async () => {
  const name = freshName();
  const held = await useLocks('v3').acquire(name);
  const [bridge, other] = [await useBridge(), await useBridge()];
  const locks = useLocks('v2', [bridge.url, other.url]);
  const waiting = locks.acquire(name);
  await untilQueued(name, 2);
  const [, entry] = await queue(name);
  await bridge.stop();
  expect((await queue(name))[1]?.key).toBe(entry?.key);
  await held.release();
  await (await waiting).release();
  expect(await queue(name)).toEqual([]);
});

test('the index of a listing during a hold is in the order of the tokens on etcd v3, the number of the entry is not', async () => {
  const name = freshName();
  const { url } = await useBridge();
  const python = await (await usePython(url)).lock(name);
  const locks = useLocks('v3');
  const first = await locks.acquire(name);
  const second = useLocks('v3').acquire(name);
  await untilQueued(name, 2);
  const waiting = python.acquire({ lockTtl: 60 });
  await untilQueued(name, 3);
  await first.release();
  const held = await second;
  const before = held.fencingToken;
  await held.release();
  expect(await waiting).toBe(true);
  const listing = await fetch(`${url}/v2/keys/_locks/${name}?recursive=true`);
  expect(rankIn((await python.state()).lockKey ?? '')).toBeLessThan(before);
  expect(BigInt(listing.headers.get('x-etcd-index') ?? 0)).toBeGreaterThan(before);
  await python.release();
});
