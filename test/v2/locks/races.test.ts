import { describe, expect, test } from 'vitest';
import { EtcdKeyNotFound } from '../../../src/errors.ts';
import {
  EtcdConnectionFailed,
  EtcdLockExpired,
  EtcdLockReleased,
  EtcdUnusableAnswer,
  Lock,
} from '../../../src/index.ts';
import { gate } from '../../support/gate.ts';
import { freshName, queueOn, raw, rejection, untilQueued, useClient, useProxy } from '../../support/locks.ts';
import { first, LOST } from '../../support/lost-requests.ts';
import type { Action, ProxiedRequest } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

const method =
  (name: string) =>
  (request: ProxiedRequest): boolean =>
    request.method === name;

async function setUp() {
  const proxy = await useProxy();
  const name = freshName();
  const client = useClient({ endpoints: proxy.url, readTimeout: 1 });
  /** Makes the proxy apply the action to the first requests with this method. */
  const onFirst = (verb: string, action: Action, count = 1): void => {
    proxy.intercept(first(count, method(verb), action));
  };
  return { proxy, name, client, onFirst };
}

/** Waits until the proxy has seen `more` further requests that match. */
const afterMore = (
  proxy: { requests: readonly ProxiedRequest[] },
  match: (request: ProxiedRequest) => boolean,
  more: number,
) => {
  const before = proxy.requests.filter(match).length;
  return until(
    () => proxy.requests.filter(match).length,
    (count) => count >= before + more,
  );
};

describe('if two locks use the same uuid one after the other,', () => {
  test('background reads for an unanswered append of the first do not remove the entry of the second', async () => {
    const { proxy, name, client, onFirst } = await setUp();
    const { opened, open } = gate();
    onFirst('POST', { hold: opened });
    const abort = new AbortController();
    const arrived = proxy.next(method('POST'), 'arrived');
    const first = rejection(new Lock(client, name, { uuid: 'node-1' }).acquire({ signal: abort.signal }));
    await arrived;
    abort.abort();
    await first;
    const second = new Lock(client, name, { uuid: 'node-1' });
    expect(await second.acquire()).toBe(true);
    open();
    const other = new Lock(useClient(), name);
    expect(await rejection(other.acquire({ timeout: 1.5 }))).toHaveProperty('holder.key', second.lockKey);
    expect(await second.isAcquired()).toBe(true);
    await second.release();
    await untilQueued(name, 0);
  });

  test('a pending removal of the first does not remove the entry of the second', async () => {
    const { proxy, name, client, onFirst } = await setUp();
    const first = new Lock(client, name, { uuid: 'node-1' });
    await first.acquire();
    onFirst('DELETE', { refuse: true }, LOST);
    expect(await rejection(first.release())).toBeInstanceOf(EtcdConnectionFailed);
    const second = new Lock(client, name, { uuid: 'node-1' });
    expect(await second.acquire({ lockTtl: 9, keepAlive: true })).toBe(true);
    await afterMore(proxy, method('PUT'), 2);
    expect(await second.isAcquired()).toBe(true);
    await second.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('the first does not remove the entry of the second, even if they have different clients', async () => {
    const { proxy, name, client, onFirst } = await setUp();
    const first = new Lock(client, name, { uuid: 'node-1' });
    onFirst('POST', { swallow: true });
    onFirst('GET', { refuse: true });
    await rejection(first.acquire({ timeout: 0.05 }));
    const isQuorumRead = (request: ProxiedRequest): boolean => request.query.get('quorum') === 'true';
    const second = new Lock(useClient(), name, { uuid: 'node-1' });
    expect(await second.acquire({ lockTtl: 60 })).toBe(true);
    const before = proxy.requests.filter(isQuorumRead).length;
    const other = new Lock(useClient(), name);
    expect(await rejection(other.acquire({ timeout: 1.5 }))).toHaveProperty('holder.key', second.lockKey);
    expect(await second.isAcquired()).toBe(true);
    expect(proxy.requests.filter(isQuorumRead)).toHaveLength(before);
    await second.release();
    await untilQueued(name, 0);
  });

  test('a lock that leaves its uuid and adopts it again keeps its entry', async () => {
    const { proxy, name, client, onFirst } = await setUp();
    const lock = new Lock(client, name);
    await lock.acquire();
    const { uuid } = lock;
    await raw('POST', `/_locks/${name}`, { value: 'other' });
    onFirst('DELETE', { refuse: true }, LOST);
    await lock.setUuid('other');
    await lock.setUuid(uuid);
    expect(await lock.acquire({ lockTtl: 9, keepAlive: true })).toBe(true);
    await afterMore(proxy, method('PUT'), 2);
    expect(await lock.isAcquired()).toBe(true);
    expect(await queueOn(name)).toMatchObject([{ value: uuid }]);
  });

  test('a refused setUuid does not stop a pending removal', async () => {
    const { name, client, onFirst } = await setUp();
    const lock = new Lock(client, name);
    await lock.acquire();
    onFirst('DELETE', { refuse: true }, LOST);
    await rejection(lock.release());
    expect(await rejection(lock.setUuid('nobody'))).toHaveProperty('message', 'Inexistent UUID');
    await untilQueued(name, 0);
  });
});

describe('a held lock acquired again', () => {
  test('with a shorter TTL is held for no longer than that TTL if the answer is lost', async () => {
    const { proxy, name, client } = await setUp();
    const lock = new Lock(client, name);
    await lock.acquire({ lockTtl: 60 });
    const { signal } = lock;
    proxy.intercept(({ method: verb }) => (verb === 'PUT' ? { swallow: true } : undefined));
    proxy.intercept(({ method: verb }) => (verb === 'GET' ? { silent: true } : undefined));
    const again = rejection(lock.acquire({ lockTtl: 2, timeout: 3 }));
    await until(
      () => signal.aborted,
      (aborted) => aborted,
    );
    expect(lock.isTaken).toBe(false);
    expect((await queueOn(name)).length).toBe(1);
    await again;
  });

  test('aborts its signal as soon as the loss is known, before it has a new entry', async () => {
    const { proxy, name, client } = await setUp();
    const lock = new Lock(client, name);
    await lock.acquire();
    const { signal } = lock;
    await raw('DELETE', lock.lockKey);
    const { opened, open } = gate();
    proxy.intercept((request) => (method('POST')(request) ? { hold: opened } : undefined));
    const arrived = proxy.next(method('POST'), 'arrived');
    const again = lock.acquire();
    await arrived;
    expect(signal.reason).toBeInstanceOf(EtcdLockExpired);
    expect(lock.isTaken).toBe(false);
    open();
    expect(await again).toBe(true);
  });
});

describe('an aborted acquire rejects with exactly the abort reason', () => {
  test.each([
    ['an EtcdLockExpired of another lock', new EtcdLockExpired('outer lock')],
    ['an EtcdKeyNotFound', new EtcdKeyNotFound('not found')],
    ['an EtcdConnectionFailed', new EtcdConnectionFailed('failed')],
    ['null', null],
    ['0', 0],
  ])('%s', async (_, reason) => {
    const { proxy, name, client } = await setUp();
    await new Lock(useClient(), name).acquire();
    for (const stage of ['POST', 'GET'] as const) {
      const abort = new AbortController();
      const arrived = proxy.next(method(stage), 'arrived');
      const failed = rejection(new Lock(client, name).acquire({ signal: abort.signal }));
      await arrived;
      abort.abort(reason);
      expect(await failed).toBe(reason);
    }
    await untilQueued(name, 1);
  });
});

describe('release and close', () => {
  test('close waits for a release under way', async () => {
    const { proxy, name, client } = await setUp();
    const lock = new Lock(client, name);
    await lock.acquire();
    const { opened, open } = gate();
    proxy.intercept((request) => (method('DELETE')(request) ? { hold: opened } : undefined));
    const arrived = proxy.next(method('DELETE'), 'arrived');
    const released = lock.release();
    await arrived;
    const closed = client.close();
    open();
    await released;
    await closed;
    expect(await queueOn(name)).toEqual([]);
  });

  test('a removal is retried after answers that are not from etcd', async () => {
    const { name, client } = await setUp();
    const lock = new Lock(client, name);
    await lock.acquire();
    const remove = client.delete.bind(client);
    let refusals = 0;
    client.delete = async (...args) => {
      refusals += 1;
      if (refusals <= 2) throw new EtcdUnusableAnswer('a page of some proxy');
      return remove(...args);
    };
    expect(await rejection(lock.release())).toBeInstanceOf(EtcdUnusableAnswer);
    await untilQueued(name, 0);
    expect(refusals).toBe(3);
  });

  test('an acquire does not resolve after release was called on the same lock', async () => {
    const { name, client } = await setUp();
    for (let turns = 0; turns < 40; turns += 1) {
      const lock = new Lock(client, name);
      let released = false;
      let heldAfterRelease = false;
      const acquired = lock.acquire().then(
        () => {
          heldAfterRelease = released;
        },
        (error) => expect(error).toBeInstanceOf(EtcdLockReleased),
      );
      for (let i = 0; i < turns; i += 1) await new Promise(setImmediate);
      released = true;
      await lock.release();
      await acquired;
      expect(heldAfterRelease).toBe(false);
    }
    expect(await queueOn(name)).toEqual([]);
  });
});

test('a stale listing of a member that lags behind causes neither a busy loop nor a missed release', async () => {
  const name = freshName();
  const owner = new Lock(useClient(), name);
  await owner.acquire();
  const client = useClient();
  const waiter = new Lock(client, name);
  const get = client.get.bind(client);
  let stale: Awaited<ReturnType<typeof get>> | undefined;
  let listings = 0;
  client.get = async (key, options) => {
    listings += 1;
    const fresh = await get(key, options);
    if (options?.quorum) return fresh;
    stale ??= fresh;
    return stale;
  };
  const waiting = waiter.acquire({ timeout: 20 });
  await untilQueued(name, 2);
  await owner.release();
  expect(await waiting).toBe(true);
  expect(listings).toBeLessThanOrEqual(4);
});
