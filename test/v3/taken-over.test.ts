// Two Locks with the same uuid, one after the other: requests of the first one must not end the hold of the second.
import { randomBytes } from 'node:crypto';
import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { Lock } from '../../src/python/lock.ts';
import { V3Client } from '../../src/v3/client.ts';
import { gate } from '../support/gate.ts';
import { freshName, rejection, useProxy } from '../support/locks.ts';
import { first } from '../support/lost-requests.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { until } from '../support/until.ts';

const isRemoval = ({ path, body }: ProxiedRequest): boolean =>
  path.endsWith('/kv/deleterange') || (path.endsWith('/kv/txn') && body.includes('request_delete_range'));

function useV3(endpoints = inject('etcd')): V3Client {
  const client = new V3Client({ endpoints });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return client;
}

/** A Lock behind a proxy. */
async function setUp() {
  const [proxy, name, uuid] = [await useProxy(), freshName(), randomBytes(16).toString('hex')];
  const client = useV3(proxy.url);
  return { proxy, name, uuid, client, lock: new Lock(client, name, { uuid }) };
}

/** Expects that the lock is held, and that nobody else gets it. */
async function expectHeld(lock: Lock, name: string): Promise<void> {
  expect(await new LockManager(useV3(), { ttl: 30 }).acquire(name, { ifAvailable: true })).toBe(null);
  expect(await lock.isAcquired()).toBe(true);
  expect(lock.signal.aborted).toBe(false);
  await lock.release();
}

test('a removal in the background ends when a Lock of a new client takes the entry over', async () => {
  const { proxy, name, uuid, lock } = await setUp();
  proxy.intercept((request) => (isRemoval(request) ? { refuse: true } : undefined));
  await lock.acquire({ lockTtl: 60 });
  await rejection(lock.release());
  const other = await useProxy();
  const second = new Lock(useV3(other.url), name, { uuid });
  expect(await second.acquire({ lockTtl: 9, keepAlive: true })).toBe(true);
  const before = proxy.requests.length;
  // Each renewal comes after three seconds. The removal was repeated at least every half second.
  await until(
    () => other.requests.filter(({ path }) => path.endsWith('/lease/keepalive')),
    ({ length }) => length === 2,
  );
  expect(proxy.requests.slice(before).filter(isRemoval)).toEqual([]);
  await expectHeld(second, name);
});

test('a removal that began before the cluster was known does not remove the entry of a later Lock', async () => {
  const { proxy, name, uuid, client, lock } = await setUp();
  const allow = proxy.intercept(({ path }) => (path === '/version' ? undefined : { swallow: true }));
  await rejection(lock.acquire({ lockTtl: null, timeout: 1 }));
  allow();
  const late = gate();
  proxy.intercept(first(1, isRemoval, { hold: late.opened }));
  await proxy.next(isRemoval, 'arrived');
  const second = new Lock(client, name, { uuid });
  expect(await second.acquire({ lockTtl: 60, keepAlive: true })).toBe(true);
  const answered = proxy.next(isRemoval, 'answered');
  late.open();
  await answered;
  await expectHeld(second, name);
});

test('a removal that etcd carries out after its process is gone does not remove the entry of the next one', async () => {
  const { proxy, name, uuid, client, lock } = await setUp();
  await lock.acquire({ lockTtl: 60 });
  const late = gate();
  proxy.intercept((request) => (isRemoval(request) ? { hold: late.opened } : undefined));
  const [arrived, answered] = [proxy.next(isRemoval, 'arrived'), proxy.next(isRemoval, 'answered')];
  lock.release().catch(() => {});
  await arrived;
  await client.close({ timeout: 0 }).catch(() => {});
  const second = new Lock(useV3(), name, { uuid });
  expect(await second.acquire({ lockTtl: 60, keepAlive: true })).toBe(true);
  late.open();
  await answered;
  await expectHeld(second, name);
});

test('a removal that setUuid has stopped does not remove the entry after it was acquired again', async () => {
  const { proxy, name, lock } = await setUp();
  await lock.acquire({ lockTtl: 60 });
  const late = gate();
  proxy.intercept(first(1, isRemoval, { hold: late.opened, cut: true }));
  const allow = proxy.intercept((request) => (isRemoval(request) ? { refuse: true } : undefined));
  await rejection(lock.release());
  await lock.setUuid(lock.uuid);
  expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
  const answered = proxy.next(isRemoval, 'answered');
  late.open();
  await answered;
  allow();
  await expectHeld(lock, name);
});

test('a Lock that takes over an entry without a TTL gets a greater token', async () => {
  const { name, uuid, client, lock } = await setUp();
  await lock.acquire({ lockTtl: null });
  const token = lock.fencingToken;
  await client.close({ timeout: 0 }).catch(() => {});
  const second = new Lock(useV3(), name, { uuid });
  expect(await second.acquire({ lockTtl: null })).toBe(true);
  expect(second.fencingToken).toBeGreaterThan(token);
  await second.release();
});

test('a late append of a Lock that has taken over an entry is removed after its release', async () => {
  const { proxy, name, uuid, client, lock } = await setUp();
  const isAppend = ({ path, body }: ProxiedRequest) =>
    path.endsWith('/kv/txn') && body.includes('request_put') && !body.includes('"MOD"');
  const kept = await new LockManager(client, { ttl: 3 }).acquire(freshName());
  await new Lock(useV3(), name, { uuid }).acquire({ lockTtl: 60 });
  const late = gate();
  proxy.intercept(first(1, isAppend, { hold: late.opened, cut: true }));
  expect(await lock.acquire({ lockTtl: 3, keepAlive: true })).toBe(true);
  await lock.release();
  const answered = proxy.next(isAppend, 'answered');
  late.open();
  await answered;
  const next = await new LockManager(useV3(), { ttl: 30 }).acquire(name, { timeout: 60 });
  await next.release();
  await kept.release();
});
