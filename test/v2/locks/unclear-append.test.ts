import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { EtcdConnectionFailed, Lock, LockManager } from '../../../src/index.ts';
import { gate } from '../../support/gate.ts';
import { freshName, queueOn, raw, rejection, untilQueued, useClient, useProxy } from '../../support/locks.ts';
import { first, LOST } from '../../support/lost-requests.ts';
import type { Action, ProxiedRequest } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

/** Seconds: longer than the time between two background reads of the queue. */
const LATE_TTL = 5;
/** Milliseconds: longer than the TTL and any background read that began within it. */
const LATER = 13_500;

const isAppend = ({ method }: ProxiedRequest): boolean => method === 'POST';
const isRemoval = ({ method }: ProxiedRequest): boolean => method === 'DELETE';

const once = (match: (request: ProxiedRequest) => boolean, action: Action) => first(1, match, action);

async function lockBehindProxy() {
  const proxy = await useProxy();
  const name = freshName();
  return { proxy, name, lock: new Lock(useClient({ endpoints: proxy.url }), name) };
}

describe('an append whose answer is lost', () => {
  test.each([true, false])('is found again by its uuid and not repeated (blocking: %s)', async (blocking) => {
    const { proxy, name, lock } = await lockBehindProxy();
    proxy.intercept(once(isAppend, { swallow: true }));
    expect(await lock.acquire({ blocking, lockTtl: 60 })).toBe(true);
    expect(proxy.requests.filter(isAppend)).toHaveLength(1);
    expect(await queueOn(name)).toMatchObject([{ key: lock.lockKey, value: lock.uuid }]);
    await lock.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('keeps its position before later entries', async () => {
    const { proxy, name, lock } = await lockBehindProxy();
    const other = new Lock(useClient(), name);
    await other.acquire();
    const third = new Lock(useClient(), name);
    proxy.intercept(once(isAppend, { swallow: true }));
    const waiting = lock.acquire({ timeout: 20 });
    await untilQueued(name, 2);
    const behind = third.acquire({ timeout: 20 });
    await untilQueued(name, 3);
    await other.release();
    expect(await waiting).toBe(true);
    expect(third.isTaken).toBe(false);
    await lock.release();
    expect(await behind).toBe(true);
  });

  test('keeps its position also if the search after a second append fails', async () => {
    const { proxy, name, lock } = await lockBehindProxy();
    const [holder, other] = [new Lock(useClient(), name), new Lock(useClient(), name)];
    await holder.acquire();
    const [firstAppend, secondAppend] = [gate(), gate()];
    proxy.intercept(once(isAppend, { hold: firstAppend.opened, cut: true }));
    const arrived = proxy.next(isAppend, 'arrived');
    const waiting = lock.acquire({ timeout: 60 });
    const late = await arrived;
    proxy.intercept(once(isAppend, { hold: secondAppend.opened }));
    // The search after the first append has found nothing.
    await proxy.next(isAppend, 'arrived');
    const answered = proxy.next((request) => request === late, 'answered');
    firstAppend.open();
    await answered;
    await untilQueued(name, 2);
    const behind = other.acquire({ timeout: 60 });
    await untilQueued(name, 3);
    const isSearch = ({ method, query }: ProxiedRequest) => method === 'GET' && query.get('quorum') === 'true';
    const refused = proxy.next(isSearch, 'arrived');
    const allow = proxy.intercept((request) => (isSearch(request) ? { refuse: true } : undefined));
    secondAppend.open();
    await refused;
    allow();
    const queue = await untilQueued(name, 3);
    expect(queue.map(({ value }) => value)).toEqual([holder.uuid, lock.uuid, other.uuid]);
    await holder.release();
    expect(await waiting).toBe(true);
    await lock.release();
    expect(await behind).toBe(true);
    await other.release();
  });

  test('makes later acquires read the queue for its key, but not renew, as long as that key may still appear', async () => {
    const { proxy, lock } = await lockBehindProxy();
    proxy.intercept(once(isAppend, { refuse: true }));
    await lock.acquire({ lockTtl: 60 });
    await lock.release();
    const before = proxy.requests.length;
    await lock.acquire({ lockTtl: 60 });
    const requests = proxy.requests.slice(before);
    const read = expect.objectContaining({ method: 'GET' });
    expect(requests).toEqual([read, expect.objectContaining({ method: 'POST' }), read, read]);
    expect(requests.map(({ query }) => query.get('quorum'))).toEqual(['true', null, null, 'true']);
    await lock.release();
  });

  test('leaves no key if the call is aborted before etcd gets the append', async () => {
    const { proxy, name, lock } = await lockBehindProxy();
    const { opened, open } = gate();
    proxy.intercept(once(isAppend, { hold: opened }));
    const abort = new AbortController();
    const arrived = proxy.next(isAppend, 'arrived');
    const forwarded = proxy.next(isAppend, 'answered');
    const failed = rejection(lock.acquire({ signal: abort.signal }));
    await arrived;
    abort.abort(new Error('enough'));
    expect(await failed).toHaveProperty('message', 'enough');
    open();
    await forwarded;
    await untilQueued(name, 0);
  });
});

describe('an append that is delayed until a second one has succeeded', () => {
  async function queuedTwice() {
    const { proxy, name, lock } = await lockBehindProxy();
    const { opened, open } = gate();
    proxy.intercept(once(isAppend, { hold: opened, cut: true }));
    const late = proxy.next(isAppend, 'arrived');
    const held = lock.acquire({ lockTtl: 60, timeout: 20 });
    const first = await late;
    return { proxy, name, lock, open, held, lateAnswered: proxy.next((request) => request === first, 'answered') };
  }

  test('leaves one key while the lock is held, and none after the release', async () => {
    const { name, lock, open, held, lateAnswered } = await queuedTwice();
    expect(await held).toBe(true);
    const { lockKey } = lock;
    open();
    await lateAnswered;
    expect(await queueOn(name)).toHaveLength(2);
    // The next listing of the lock shows the second key.
    expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
    expect(await queueOn(name)).toMatchObject([{ key: lockKey, value: lock.uuid }]);
    await lock.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('is removed by the read after the release', async () => {
    const { name, lock, open, held, lateAnswered } = await queuedTwice();
    expect(await held).toBe(true);
    open();
    await lateAnswered;
    await lock.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('is removed even if etcd gets it after the release', async () => {
    const { name, lock, open, held, lateAnswered } = await queuedTwice();
    expect(await held).toBe(true);
    await lock.release();
    open();
    await lateAnswered;
    await untilQueued(name, 0);
  });

  test('is removed after a release that keeps the other key because of holdAtLeast', async () => {
    const { proxy, name } = await lockBehindProxy();
    const { opened, open } = gate();
    proxy.intercept(once(isAppend, { hold: opened, cut: true }));
    const late = proxy.next(isAppend, 'arrived');
    const locks = new LockManager(useClient({ endpoints: proxy.url }), { ttl: 60, timeout: 20 });
    const acquired = locks.acquire(name, { holdAtLeast: 90 });
    const first = await late;
    const held = await acquired;
    expect(await held.release()).toBe(true);
    const lateAnswered = proxy.next((request) => request === first, 'answered');
    open();
    await lateAnswered;
    const [kept] = await untilQueued(name, 1);
    expect(kept?.key).toBe(held.key);
    expect(kept?.ttl).toBeGreaterThan(60);
    await raw('DELETE', held.key);
  });

  test('is removed even if etcd gets it after the TTL, which etcd counts only from then on', {
    timeout: 40_000,
  }, async () => {
    const { proxy, name, lock } = await lockBehindProxy();
    const { opened, open } = gate();
    proxy.intercept(once(isAppend, { hold: opened, cut: true }));
    const late = proxy.next(isAppend, 'arrived');
    const held = lock.acquire({ lockTtl: LATE_TTL, timeout: 20 });
    await late;
    await held;
    await lock.release();
    await sleep(LATER);
    const removed = proxy.next(({ method, status }) => method === 'DELETE' && status === 200, 'answered');
    open();
    await removed;
    expect(await queueOn(name)).toEqual([]);
  });

  test('is removed at the next listing while the lock waits', async () => {
    const { proxy, name, lock } = await lockBehindProxy();
    const owner = new Lock(useClient(), name);
    await owner.acquire();
    const { opened, open } = gate();
    proxy.intercept(once(isAppend, { hold: opened, cut: true }));
    const arrived = proxy.next(isAppend, 'arrived');
    const waiting = lock.acquire({ lockTtl: 3, keepAlive: true, timeout: 20 });
    const first = await arrived;
    const lateAnswered = proxy.next((request) => request === first, 'answered');
    await untilQueued(name, 2);
    open();
    await lateAnswered;
    const [, own] = await untilQueued(name, 2);
    await owner.release();
    expect(await waiting).toBe(true);
    expect(lock.lockKey).toBe(own?.key);
    expect(await queueOn(name)).toHaveLength(1);
  });
});

test('an append that a proxy sends twice does not make the lock wait for its own duplicate', async () => {
  const { proxy, name } = await lockBehindProxy();
  let before: Promise<unknown> | undefined;
  proxy.intercept((request) => {
    if (!isAppend(request) || before) return undefined;
    before = raw('POST', `/_locks/${name}`, Object.fromEntries(new URLSearchParams(request.body)));
    return { hold: before };
  });
  const held = await new LockManager(useClient({ endpoints: proxy.url }), { ttl: 60 }).acquire(name, { timeout: 10 });
  expect(await queueOn(name)).toMatchObject([{ key: held.key }]);
  await held.release();
  expect(await queueOn(name)).toEqual([]);
});

describe('a release whose answer is lost', () => {
  test('rejects, and is completed before the same lock is acquired again', async () => {
    const { proxy, name, lock } = await lockBehindProxy();
    await lock.acquire();
    const { lockKey } = lock;
    proxy.intercept(first(LOST, isRemoval, { swallow: true }));
    expect(await rejection(lock.release())).toBeInstanceOf(EtcdConnectionFailed);
    expect(lock.isTaken).toBe(false);
    expect(await lock.acquire({ blocking: false })).toBe(true);
    expect(lock.lockKey).not.toBe(lockKey);
    expect(await queueOn(name)).toMatchObject([{ key: lock.lockKey }]);
    await lock.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('does not remove the new entry of the same lock if etcd gets the removal late', async () => {
    const { proxy, name, lock } = await lockBehindProxy();
    await lock.acquire();
    const { opened, open } = gate();
    proxy.intercept(first(LOST, isRemoval, { hold: opened, cut: true }));
    const arrived = proxy.next(isRemoval, 'arrived');
    const failed = rejection(lock.release());
    const removal = await arrived;
    expect(await failed).toBeInstanceOf(EtcdConnectionFailed);
    expect(await lock.acquire({ timeout: 20 })).toBe(true);
    const late = proxy.next((request) => request === removal, 'answered');
    open();
    await late;
    expect(await lock.isAcquired()).toBe(true);
    expect(await queueOn(name)).toMatchObject([{ key: lock.lockKey }]);
  });

  test('is retried in the background if the lock is not acquired again', async () => {
    const { proxy, name, lock } = await lockBehindProxy();
    await lock.acquire();
    proxy.intercept(first(LOST, isRemoval, { refuse: true }));
    expect(await rejection(lock.release())).toBeInstanceOf(EtcdConnectionFailed);
    await untilQueued(name, 0);
  });
});

describe('closing the client', () => {
  test('ends a waiting acquire and removes its key', async () => {
    const name = freshName();
    const owner = new Lock(useClient(), name);
    await owner.acquire();
    const client = useClient();
    const waiting = rejection(new Lock(client, name).acquire());
    await untilQueued(name, 2);
    await client.close();
    expect(await waiting).toHaveProperty('name', 'EtcdClientClosed');
    expect(await queueOn(name)).toMatchObject([{ value: owner.uuid }]);
  });

  test('finishes pending removals', async () => {
    const { proxy, name, lock } = await lockBehindProxy();
    const client = useClient({ endpoints: proxy.url });
    const other = new Lock(client, `${name}-2`);
    await other.acquire();
    proxy.intercept(first(LOST, isRemoval, { refuse: true }));
    await rejection(other.release());
    await client.close();
    expect(await queueOn(`${name}-2`)).toEqual([]);
    expect(lock.isTaken).toBe(false);
  });

  test('names the queue and the value of an entry whose append was not answered', async () => {
    const { proxy, name } = await lockBehindProxy();
    const client = useClient({ endpoints: proxy.url, readTimeout: 0.2 });
    proxy.intercept(() => ({ silent: true }));
    const lock = new Lock(client, name);
    await rejection(lock.acquire({ timeout: 0.3 }));
    const error = await rejection(client.close({ timeout: 0.3 }));
    expect(error).toMatchObject({ name: 'EtcdKeysLeft', keys: [`/_locks/${name}/? (value ${lock.uuid})`] });
  });

  test('names the keys that it could not remove', async () => {
    const { proxy, name } = await lockBehindProxy();
    const client = useClient({ endpoints: proxy.url, readTimeout: 0.2 });
    const lock = new Lock(client, name);
    await lock.acquire();
    proxy.intercept((request) => (isRemoval(request) ? { silent: true } : undefined));
    await rejection(lock.release());
    const error = await rejection(client.close({ timeout: 0.3 }));
    expect(error).toMatchObject({ name: 'EtcdKeysLeft', keys: [lock.lockKey] });
    await until(
      () => proxy.openSockets,
      (open) => open === 0,
    );
  });
});
