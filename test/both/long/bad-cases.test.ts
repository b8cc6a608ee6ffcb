import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { ignore } from '../../../src/base/cancellation.ts';
import { EtcdClient } from '../../../src/client.ts';
import { EtcdClientClosed, EtcdKeysLeft, EtcdLockExpired, EtcdLockTimeout } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { Lock } from '../../../src/python/lock.ts';
import { aborted } from '../../suites/lock/locks.ts';
import { keysOf, untilKeys, useEtcdClient } from '../../support/both.ts';
import { rejection } from '../../support/clients.ts';
import { freshName, raw, useProxy } from '../../support/locks.ts';
import { type EtcdProxy, type ProxiedRequest, startProxy } from '../../support/proxy.ts';
import { elapsed, moment } from '../../support/stalls/stalls.mjs';

const isOnV3 = ({ path }: ProxiedRequest): boolean => path.startsWith('/v3/');
const isAppend = ({ path, body }: ProxiedRequest): boolean => path === '/v3/kv/txn' && body.includes('request_put');
const isRemoval = ({ path }: ProxiedRequest): boolean => path === '/v3/kv/deleterange';

/** Holds the lock on v3 only, so that clients of both APIs wait for it there. */
async function holdOnV3(name: string) {
  const held = await new LockManager(useEtcdClient({ api: 'v3' }), { ttl: 60 }).acquire(name);
  onTestFinished(async () => void (await held.release()));
  return held;
}

/** A client of both APIs that waits on v3, behind a proxy. */
async function waitOnV3(): Promise<{ name: string; client: EtcdClient; proxy: EtcdProxy; waiter: Lock }> {
  const name = freshName();
  await holdOnV3(name);
  const proxy = await useProxy();
  const client = useEtcdClient({ endpoints: proxy.url });
  return { name, client, proxy, waiter: new Lock(client, name) };
}

test('a lost answer to the append on v3 makes no second entry', async () => {
  const name = freshName();
  const proxy = await useProxy();
  let lost = 0;
  proxy.intercept((request) => (isAppend(request) && lost++ === 0 ? { swallow: true } : undefined));
  const held = await new LockManager(useEtcdClient({ endpoints: proxy.url })).acquire(name);
  const { v2, v3 } = await keysOf(name);
  expect([v2.length, v3.length, lost]).toEqual([1, 1, expect.toSatisfy((count) => count > 1)]);
  expect(await held.release()).toBe(true);
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('a Lock that waits on v2 removes the entry that an earlier process with its uuid has left on v3', async () => {
  const name = freshName();
  const uuid = freshName();
  await new Lock(useEtcdClient({ api: 'v3' }), name, { uuid }).acquire({ lockTtl: 600 });
  const first = new LockManager(useEtcdClient(), { ttl: 60 }).acquire(name);
  await untilKeys(name, 1, 2);
  const again = new Lock(useEtcdClient(), name, { uuid });
  const acquired = again.acquire({ lockTtl: 60 });
  await (await first).release();
  expect(await acquired).toBe(true);
  await again.release();
  expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
});

test('a Lock with a chosen uuid that waits on v2 gives up at its timeout although v3 is silent', async () => {
  const [name, proxy] = [freshName(), await useProxy()];
  const held = await new LockManager(useEtcdClient({ api: 'v2' }), { ttl: 60 }).acquire(name);
  proxy.intercept((request) => (isOnV3(request) ? { silent: true } : undefined));
  const lock = new Lock(useEtcdClient({ endpoints: proxy.url }), name, { uuid: freshName() });
  const asked = moment();
  await rejection(lock.acquire({ timeout: 2 }), EtcdLockTimeout);
  // Without the timeout, the read on v3 alone would take ten seconds.
  expect(elapsed(asked)).toBeLessThan(5000);
  await held.release();
});

test('a Lock that is first on v2 takes over the entry that an earlier process with its uuid has left on v3', async () => {
  const name = freshName();
  const uuid = freshName();
  await new Lock(useEtcdClient({ api: 'v3' }), name, { uuid }).acquire({ lockTtl: 600 });
  const waiting = new LockManager(useEtcdClient({ api: 'v3' }), { ttl: 60 }).acquire(name);
  await untilKeys(name, 0, 2);
  const lock = new Lock(useEtcdClient(), name, { uuid });
  expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
  await lock.release();
  await (await waiting).release();
});

describe('while v3 does not answer', () => {
  test('an attempt ends at its timeout, and leaves no entry', async () => {
    const name = freshName();
    const proxy = await useProxy();
    proxy.intercept((request) => (isOnV3(request) ? { silent: true } : undefined));
    const locks = new LockManager(useEtcdClient({ endpoints: proxy.url }), { ttl: 60 });
    const began = performance.now();
    await rejection(locks.acquire(name, { timeout: 2 }), EtcdLockTimeout);
    expect(performance.now() - began).toBeLessThan(8_000);
    await untilKeys(name, 0, 0);
  });

  test('a release does not keep clients of v2 waiting', async () => {
    const name = freshName();
    const proxy = await useProxy();
    const held = await new LockManager(useEtcdClient({ endpoints: proxy.url }), { ttl: 60 }).acquire(name);
    const next = new LockManager(useEtcdClient({ api: 'v2' }), { ttl: 60 }).acquire(name);
    await untilKeys(name, 2, 1);
    const answerAgain = proxy.intercept((request) => (isRemoval(request) ? { silent: true } : undefined));
    await held.release();
    await (await next).release();
    answerAgain();
    await untilKeys(name, 0, 0);
  });

  test('closing the client names the entries in both stores', async () => {
    const name = freshName();
    const client = new EtcdClient({ endpoints: inject('etcd'), api: 'both' });
    const held = await new LockManager(client, { ttl: 60 }).acquire(name);
    const { v2, v3 } = await keysOf(name);
    const { keys } = await rejection(client.close({ timeout: 0.1 }), EtcdKeysLeft);
    expect(keys).toEqual([...v2, ...v3].sort());
    await held.release();
  });
});

describe('a wait on v3', () => {
  test('ends when its signal aborts, and leaves no entry', async () => {
    const { name, waiter } = await waitOnV3();
    const abort = new AbortController();
    const call = waiter.acquire({ signal: abort.signal });
    await untilKeys(name, 1, 2);
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(call).rejects.toBe(reason);
    await untilKeys(name, 0, 1);
  });

  test('ends at its timeout, which names the holder on v3', async () => {
    const { name, waiter } = await waitOnV3();
    const { holder } = await rejection(waiter.acquire({ timeout: 5 }), EtcdLockTimeout);
    expect(holder?.key).toBe((await keysOf(name)).v3[0]);
    await untilKeys(name, 0, 1);
  });

  test('ends when the client is closed, and leaves no entry', async () => {
    const { name, waiter, client } = await waitOnV3();
    const call = rejection(waiter.acquire(), EtcdClientClosed);
    await untilKeys(name, 1, 2);
    await client.close();
    await call;
    expect(await keysOf(name)).toMatchObject({ v2: [], v3: [expect.anything()] });
  });

  test('ends when the own entry on v2 is gone, and leaves no entry', async () => {
    const { name, waiter } = await waitOnV3();
    const call = rejection(waiter.acquire({ lockTtl: 3, keepAlive: true }), EtcdLockExpired);
    await untilKeys(name, 1, 2);
    await raw('DELETE', waiter.lockKey);
    await call;
    await untilKeys(name, 0, 1);
  });

  test('ends when the own entry on v2 has expired, because nobody renews it', async () => {
    const { name, waiter } = await waitOnV3();
    await rejection(waiter.acquire({ lockTtl: 2, keepAlive: false }), EtcdLockExpired);
    await untilKeys(name, 0, 1);
  });
});

// The first requests of a client: an append and a listing on v2, a lease and an append on v3. Renewals follow.
test.concurrent.for([0, 1, 2, 3, 4, 5])(
  'a process that stops after %i requests keeps the others waiting for its TTL at most',
  async (answered, { expect }) => {
    const name = freshName();
    const proxy = await startProxy(inject('etcd'));
    let stopped = false;
    proxy.intercept((request) => {
      stopped ||= proxy.requests.filter(({ path }) => path !== '/version').length > answered;
      return stopped && request.path !== '/version' ? { silent: true } : undefined;
    });
    const dead = new EtcdClient({ endpoints: proxy.url, api: 'both' });
    let isHeld = false;
    const hold = new LockManager(dead, { ttl: 4 }).acquire(name).then(async (held) => {
      isHeld = true;
      await aborted(held.signal);
      isHeld = false;
      await held.release();
    }, ignore);
    await proxy.next(() => stopped, 'arrived');
    for (const api of ['v2', 'both', 'v3'] as const) {
      const client = new EtcdClient({ endpoints: inject('etcd'), api });
      await new LockManager(client).request(name, { timeout: 60 }, () => expect(isHeld).toBe(false));
      await client.close();
    }
    await dead.close({ timeout: 0 }).catch(ignore);
    await hold;
    await proxy.stop();
  },
);
