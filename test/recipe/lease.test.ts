import { describe, expect, test, vi } from 'vitest';
import { EtcdConnectionFailed, EtcdLockExpired, EtcdUnusableAnswer, Lock } from '../../src/index.ts';
import { gate } from '../support/gate.ts';
import { freshName, nextWatch, queueOn, raw, rejection, untilQueued, useClient, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { elapsed, moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';

const isRenewal = ({ method }: ProxiedRequest): boolean => method === 'PUT';

/** Milliseconds until an answer has arrived and the test has noticed it. */
const NOTICED = 200;

const aborted = (signal: AbortSignal): Promise<AbortSignal> =>
  until(
    () => signal,
    ({ aborted }) => aborted,
  );

async function expireAtOnce({ lockKey, uuid }: Lock): Promise<void> {
  await raw('PUT', lockKey, { value: uuid, ttl: '0' });
  await until(
    () => raw('GET', lockKey),
    ({ status }) => status === 404,
  );
}

describe('a lock with keepAlive', () => {
  test('outlives its TTL under the same key, and its renewals wake no waiter', async () => {
    const [proxy, proxyOfHolder] = [await useProxy(), await useProxy()];
    const name = freshName();
    const holder = new Lock(useClient({ endpoints: proxyOfHolder.url }), name);
    const waiter = new Lock(useClient({ endpoints: proxy.url }), name);
    // On a busy machine, the version of etcd may not be known in time for the first renewal, which then wakes waiters.
    const refreshed = proxyOfHolder.next(
      (request) => isRenewal(request) && request.status === 200 && request.body.includes('refresh=true'),
      'answered',
    );
    await holder.acquire({ lockTtl: 5, keepAlive: true });
    await refreshed;
    const { lockKey } = holder;
    const waiting = waiter.acquire({ timeout: 30 });
    const [{ modifiedIndex } = { modifiedIndex: 0 }] = await untilQueued(name, 2);
    const renewed = await until(
      () => queueOn(name),
      ([own]) => own === undefined || own.modifiedIndex >= modifiedIndex + 6,
    );
    expect(renewed).toMatchObject([{ key: lockKey, value: holder.uuid }, { value: waiter.uuid }]);
    expect(holder.isTaken).toBe(true);
    expect(await holder.isAcquired()).toBe(true);
    expect(proxy.requests.filter(({ query }) => query.get('wait'))).toHaveLength(1);
    await holder.release();
    expect(holder.signal.aborted).toBe(false);
    expect(await waiting).toBe(true);
  });

  test('is renewed while it waits', async () => {
    const name = freshName();
    const holder = new Lock(useClient(), name);
    const waiter = new Lock(useClient(), name);
    await holder.acquire({ lockTtl: 60 });
    const waiting = waiter.acquire({ lockTtl: 5, keepAlive: true });
    const [, own] = await untilQueued(name, 2);
    await until(
      () => queueOn(name),
      (queue) => queue.length === 2 && (queue[1]?.modifiedIndex ?? 0) >= (own?.modifiedIndex ?? 0) + 6,
    );
    await holder.release();
    expect(await waiting).toBe(true);
    expect(waiter.lockKey).toBe(own?.key);
    await waiter.release();
  });

  test.each([
    ['removed', (key: string) => raw('DELETE', key)],
    ['overwritten with another value', (key: string) => raw('PUT', key, { value: 'other' })],
  ])('aborts its signal at the next renewal after its key was %s', async (_, change) => {
    const lock = new Lock(useClient(), freshName());
    await lock.acquire({ lockTtl: 9, keepAlive: true });
    const { signal } = lock;
    await change(lock.lockKey);
    await aborted(signal);
    expect(signal.reason).toBeInstanceOf(EtcdLockExpired);
    expect(signal.reason.message).toMatch(/gone|another value/);
    expect(lock.isTaken).toBe(false);
    expect(await lock.isAcquired()).toBe(false);
  });

  test('aborts its signal within half its TTL after a removal by hand, even if two of three members are silent', async () => {
    const ttl = 6;
    const [first, second, third] = [await useProxy(), await useProxy(), await useProxy()];
    const client = useClient({ endpoints: [first, second, third].map(({ url }) => url) });
    const lock = new Lock(client, freshName());
    await lock.acquire({ lockTtl: ttl, keepAlive: true });
    await first.next(isRenewal, 'answered');
    for (const proxy of [first, second]) proxy.intercept(() => ({ silent: true }));
    const removed = moment();
    await raw('DELETE', lock.lockKey);
    await aborted(lock.signal);
    expect(elapsed(removed)).toBeLessThan((ttl / 2) * 1000 + NOTICED);
    expect(third.requests.filter(isRenewal)).toHaveLength(1);
  });

  test.each([
    ['by hand', (lock: Lock) => raw('DELETE', lock.lockKey)],
    ['by expiry', (lock: Lock) => expireAtOnce(lock)],
  ])('aborts its signal after its key was removed %s and created again with the same value', async (_, remove) => {
    const lock = new Lock(useClient(), freshName());
    await lock.acquire({ lockTtl: 15, keepAlive: true });
    const { signal } = lock;
    await remove(lock);
    await raw('PUT', lock.lockKey, { value: lock.uuid, ttl: '60' });
    await aborted(signal);
    expect(signal.reason.message).toContain('re-created');
    expect(lock.isTaken).toBe(false);
    await raw('DELETE', lock.lockKey);
  });

  test('never re-creates a key that is gone', async () => {
    const name = freshName();
    const lock = new Lock(useClient(), name);
    await lock.acquire({ lockTtl: 2, keepAlive: true });
    await raw('DELETE', lock.lockKey);
    await aborted(lock.signal);
    expect(await queueOn(name)).toEqual([]);
  });

  test('keeps renewing its key after python-etcd has renewed that key', async () => {
    const lock = new Lock(useClient(), freshName());
    await lock.acquire({ lockTtl: 9, keepAlive: true });
    const { body } = await raw('PUT', lock.lockKey, { value: lock.uuid, ttl: '9' });
    await until(
      () => raw('GET', lock.lockKey),
      ({ body: { node } }) => node.modifiedIndex > body.node.modifiedIndex + 2,
    );
    expect(lock.isTaken).toBe(true);
    await lock.release();
  });

  test('survives a renewal whose answer is lost', async () => {
    const proxy = await useProxy();
    const lock = new Lock(useClient({ endpoints: proxy.url }), freshName());
    await lock.acquire({ lockTtl: 6, keepAlive: true });
    let swallowed = 0;
    const off = proxy.intercept((request) => {
      if (!isRenewal(request)) return undefined;
      swallowed += 1;
      return { swallow: true };
    });
    await proxy.next(isRenewal, 'answered');
    off();
    const seen = await until(
      () => raw('GET', lock.lockKey),
      () => proxy.requests.filter((request) => isRenewal(request) && request.status === 200).length >= swallowed + 2,
    );
    expect(seen.body.node.value).toBe(lock.uuid);
    expect(lock.isTaken).toBe(true);
    await lock.release();
  });

  test('survives two renewals that are answered with a page that is not from etcd', async () => {
    const client = useClient();
    const lock = new Lock(client, freshName());
    await lock.acquire({ lockTtl: 6, keepAlive: true });
    const renew = client.renew.bind(client);
    let pages = 0;
    const renewed = new Promise((resolve) => {
      client.renew = async (...args) => {
        if (pages < 2) throw new EtcdUnusableAnswer(`page ${++pages}: 429 "Too Many Requests"`);
        return renew(...args).finally(() => resolve(undefined));
      };
    });
    await renewed;
    expect(pages).toBe(2);
    expect(lock.signal.aborted).toBe(false);
    await lock.release();
  });

  test('is not shortened by a renewal that etcd carries out late', async () => {
    const proxy = await useProxy();
    const lock = new Lock(useClient({ endpoints: proxy.url }), freshName());
    await lock.acquire({ lockTtl: 3, keepAlive: true });
    const { opened, open } = gate();
    let first: ProxiedRequest | undefined;
    proxy.intercept((request) => {
      if (!isRenewal(request) || first) return undefined;
      first = request;
      return { hold: opened, cut: true };
    });
    await proxy.next((request) => isRenewal(request) && request !== first, 'answered');
    const late = proxy.next((request) => request === first, 'answered');
    open();
    expect((await late).status).toBe(412);
    expect(lock.isTaken).toBe(true);
    await lock.release();
  });

  test('aborts its signal before its key expires if the server answers no renewal', async () => {
    const proxy = await useProxy();
    const lock = new Lock(useClient({ endpoints: proxy.url }), freshName(), { margin: 6 });
    const sent = performance.now();
    await lock.acquire({ lockTtl: 12, keepAlive: true });
    proxy.intercept((request) => (isRenewal(request) ? { silent: true } : undefined));
    await aborted(lock.signal);
    expect(lock.signal.reason).toBeInstanceOf(EtcdLockExpired);
    expect(lock.signal.reason.cause).toBeInstanceOf(EtcdConnectionFailed);
    expect(lock.isTaken).toBe(false);
    // The key still exists, so nobody else can have the lock.
    expect((await raw('GET', lock.lockKey)).body.node?.value ?? `gone ${performance.now() - sent}`).toBe(lock.uuid);
    proxy.intercept(() => undefined);
  });

  test('names the missing answer as the cause of its loss, even if a blocked event loop delays the error', async () => {
    const proxy = await useProxy();
    const lock = new Lock(useClient({ endpoints: proxy.url }), freshName(), { margin: 6 });
    await lock.acquire({ lockTtl: 12, keepAlive: true });
    const deadline = performance.now() + 6000;
    proxy.intercept((request) => (isRenewal(request) ? { silent: true } : undefined));
    await proxy.next(isRenewal, 'arrived');
    while (performance.now() < deadline);
    expect(lock.isTaken).toBe(false);
    expect(lock.signal.reason).toMatchObject({ name: 'EtcdLockExpired', cause: expect.any(EtcdConnectionFailed) });
    await lock.release();
  });
});

describe('a lock without keepAlive', () => {
  test('is not acquired if its key was removed and created again while it waited', async () => {
    const name = freshName();
    const client = useClient();
    const [holder, waiter] = [new Lock(useClient(), name), new Lock(client, name)];
    await holder.acquire();
    const watches = nextWatch(client);
    const waiting = rejection(waiter.acquire({ lockTtl: 60 }));
    const [, own] = await untilQueued(name, 2);
    // A read between the two requests would find no key at all.
    await watches;
    await raw('DELETE', own?.key ?? '');
    await raw('PUT', own?.key ?? '', { value: waiter.uuid, ttl: '60' });
    await holder.release();
    expect(await waiting).toMatchObject({ name: 'EtcdLockExpired', message: expect.stringContaining('re-created') });
    await untilQueued(name, 0);
  });

  test('is reported lost by isAcquired if its key was removed and created again with the same value', async () => {
    const lock = new Lock(useClient(), freshName());
    await lock.acquire({ lockTtl: 60 });
    await raw('DELETE', lock.lockKey);
    await raw('PUT', lock.lockKey, { value: lock.uuid, ttl: '60' });
    expect(await lock.isAcquired()).toBe(false);
    expect(lock.signal.reason.message).toContain('re-created');
    await raw('DELETE', lock.lockKey);
  });

  test('aborts its signal before its key expires', async () => {
    const lock = new Lock(useClient(), freshName());
    await lock.acquire({ lockTtl: 2 });
    await aborted(lock.signal);
    expect(lock.signal.reason).toBeInstanceOf(EtcdLockExpired);
    expect(lock.isTaken).toBe(false);
  });

  test('is reported lost by isTaken even if a blocked event loop delays its timer', async () => {
    const lock = new Lock(useClient(), freshName());
    await lock.acquire({ lockTtl: 2 });
    const end = performance.now() + 2000;
    while (performance.now() < end);
    expect(lock.isTaken).toBe(false);
    expect(lock.signal.aborted).toBe(true);
  });

  test('keeps its signal when it is renewed, and aborts that signal at a later loss', async () => {
    const lock = new Lock(useClient(), freshName());
    await lock.acquire({ lockTtl: 60 });
    const { signal } = lock;
    await lock.acquire({ lockTtl: 2 });
    expect(lock.signal).toBe(signal);
    await aborted(signal);
  });

  test('is not lost if it never expires', async () => {
    const lock = new Lock(useClient(), freshName());
    await lock.acquire({ lockTtl: null });
    expect(lock.isTaken).toBe(true);
    await lock.release();
  });

  test('may have a TTL of a year: long timers are chained and do not fire at once', async () => {
    const year = 365 * 24 * 3600;
    const delays = vi.spyOn(globalThis, 'setTimeout');
    const lock = new Lock(useClient(), freshName());
    expect(await lock.acquire({ lockTtl: year, keepAlive: true })).toBe(true);
    const longest = Math.max(...delays.mock.calls.map(([, ms]) => ms ?? 0));
    delays.mockRestore();
    expect(longest).toBe(2 ** 31 - 1);
    expect(lock.isTaken).toBe(true);
    expect(lock.signal.aborted).toBe(false);
    expect((await raw('GET', lock.lockKey)).body.node.ttl).toBeGreaterThan(year - 60);
    await lock.release();
  });
});
