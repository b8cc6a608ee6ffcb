// A Lock that is acquired again with another TTL: its entry moves to another lease.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { Lock } from '../../src/python/lock.ts';
import { V3Client } from '../../src/v3/client.ts';
import { gate } from '../support/gate.ts';
import { entriesBelow } from '../support/gateway.ts';
import { freshName, useProxy } from '../support/locks.ts';
import { first } from '../support/lost-requests.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { until } from '../support/until.ts';

const isMove = ({ path, body }: ProxiedRequest): boolean =>
  path.endsWith('/kv/txn') && body.includes('"MOD"') && body.includes('request_put');
const isKeepAlive = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/keepalive');

function useV3(endpoints = inject('etcd')): V3Client {
  const client = new V3Client({ endpoints });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return client;
}

async function setUp() {
  const [proxy, name] = [await useProxy(), freshName()];
  const client = useV3(proxy.url);
  return { proxy, name, client, lock: new Lock(client, name), locks: new LockManager(useV3(), { ttl: 30 }) };
}

test('keeps its entry although its old lease expires for it during the move', async () => {
  const { proxy, name, client, lock, locks } = await setUp();
  const kept = await new LockManager(client, { ttl: 3 }).acquire(freshName());
  const holder = await locks.acquire(name);
  expect(await lock.acquire({ blocking: false, keepAlive: true, lockTtl: 3 })).toBe(false);
  const since = performance.now();
  await holder.release();
  const moved = gate();
  proxy.intercept((request) => {
    if (isMove(request)) return { answerAfter: moved.opened };
    // The first renewal of the other entry after a TTL: it finds that this entry was not renewed.
    if (isKeepAlive(request) && performance.now() > since + 3050) moved.open();
    return undefined;
  });
  await sleep(since + 2800 - performance.now());
  expect(await lock.acquire({ lockTtl: 30, keepAlive: true })).toBe(true);
  const renewals = () => proxy.requests.filter(isKeepAlive).length;
  const before = renewals();
  await until(renewals, (count) => count > before + 2);
  expect(await lock.isAcquired()).toBe(true);
  await lock.release();
  await kept.release();
});

test('enters the queue again if its entry has expired since a renewal for another lock', async () => {
  const { proxy, name, client, lock, locks } = await setUp();
  const other = await new LockManager(client, { ttl: 3 }).acquire(freshName());
  const holder = await locks.acquire(name);
  expect(await lock.acquire({ blocking: false, keepAlive: true, lockTtl: 3 })).toBe(false);
  const renewals = () => proxy.requests.filter(isKeepAlive).length;
  const before = renewals();
  await until(renewals, (count) => count > before);
  await other.release();
  await until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 1,
  );
  expect(await lock.acquire({ blocking: false, keepAlive: true, lockTtl: 3 })).toBe(false);
  expect(await entriesBelow(`/_locks/${name}/`)).toHaveLength(2);
  await lock.release();
  await holder.release();
});

test('keeps its entry although the answer to the move is lost', async () => {
  const { proxy, name, lock, locks } = await setUp();
  await lock.acquire({ lockTtl: 20 });
  const waiting = locks.acquire(name, { timeout: 60 });
  await until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 2,
  );
  proxy.intercept(first(3, isMove, { swallow: true }));
  const [{ rank } = { rank: 0n }] = await entriesBelow(`/_locks/${name}/`);
  expect(await lock.acquire({ lockTtl: 30 })).toBe(true);
  expect(proxy.requests.filter(isMove).length).toBeGreaterThan(3);
  expect(await entriesBelow(`/_locks/${name}/`)).toMatchObject([{ rank }, {}]);
  await lock.release();
  await (await waiting).release();
});

test('is lost before anybody else gets the lock if no answer comes after the move, to a lease that was renewed earlier', async () => {
  const { proxy, name, client, lock, locks } = await setUp();
  await lock.acquire({ lockTtl: 100 });
  const since = performance.now();
  await new LockManager(client, { ttl: 6 }).acquire(freshName());
  const waiting = locks.acquire(name, { timeout: 60 });
  let isCut = false;
  proxy.intercept((request) => {
    if (isCut) return { silent: true };
    isCut = isMove(request);
    return isCut ? { swallow: true } : undefined;
  });
  await sleep(since + 1800 - performance.now());
  lock.acquire({ lockTtl: 6, keepAlive: true, timeout: 30 }).catch(() => {});
  const isTaken = await waiting.then(() => lock.isTaken);
  expect([isCut, isTaken]).toEqual([true, false]);
  await (await waiting).release();
});
