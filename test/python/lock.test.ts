import { describe, expect, test } from 'vitest';
import {
  EtcdConnectionFailed,
  EtcdLockExpired,
  EtcdLockReleased,
  EtcdLockTimeout,
  EtcdValueError,
  Lock,
} from '../../src/index.ts';
import { freshName, queueOn, raw, recentTtl, rejection, untilQueued, useClient } from '../support/locks.ts';

/** Two contenders for one lock, each with a client of its own. */
function pair() {
  const name = freshName();
  return { name, a: new Lock(useClient(), name), b: new Lock(useClient(), name) };
}

describe('acquire', () => {
  test('appends a key with the uuid as value and the given TTL, and holds the lock if that key is the first', async () => {
    const { name, a } = pair();
    expect(await a.acquire({ lockTtl: 60 })).toBe(true);
    const [entry, ...others] = await queueOn(name);
    expect(others).toEqual([]);
    expect(entry).toMatchObject({ key: a.lockKey, value: a.uuid, ttl: recentTtl(60) });
    expect(a.uuid).toMatch(/^[0-9a-f]{32}$/);
    expect(a.path).toBe(`/_locks/${name}`);
    expect(a.lockKey).toMatch(new RegExp(`^/_locks/${name}/\\d{20}$`));
    expect(a.fencingToken).toBe(BigInt(a.lockKey.slice(-20)));
    expect(a.isTaken).toBe(true);
    expect(await a.isAcquired()).toBe(true);
  });

  test('sets a TTL of an hour by default, and none if `lockTtl` is null', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    await b.acquire({ blocking: false, lockTtl: null });
    const [first, second] = await queueOn(name);
    expect(first?.ttl).toBe(3600);
    expect(second?.ttl).toBeUndefined();
  });

  test('waits until the holder releases, and gets a greater fencing token', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    const waiting = b.acquire();
    await untilQueued(name, 2);
    await a.release();
    expect(await waiting).toBe(true);
    expect(b.fencingToken).toBeGreaterThan(a.fencingToken);
    expect(await queueOn(name)).toMatchObject([{ value: b.uuid }]);
  });

  test('does not mistake a renewal by the holder for a release', async () => {
    const { name, a, b } = pair();
    await a.acquire({ lockTtl: 60 });
    const waiting = b.acquire({ timeout: 20 });
    await untilQueued(name, 2);
    // python-etcd renews with a plain PUT, which wakes the waiter
    for (let i = 0; i < 3; i += 1) await raw('PUT', a.lockKey, { value: a.uuid, ttl: '60' });
    expect(b.isTaken).toBe(false);
    await a.release();
    expect(await waiting).toBe(true);
  });

  test('gets the lock after the holder even if a waiter in between has given up', async () => {
    const { name, a, b } = pair();
    const c = new Lock(useClient(), name);
    await a.acquire();
    const gaveUp = rejection(b.acquire());
    await untilQueued(name, 2);
    const waiting = c.acquire();
    await untilQueued(name, 3);
    await b.release();
    expect(await gaveUp).toBeInstanceOf(EtcdLockReleased);
    expect(c.isTaken).toBe(false);
    await a.release();
    expect(await waiting).toBe(true);
  });

  test('gets the lock when the key of the holder expires', async () => {
    const { a, b } = pair();
    await a.acquire({ lockTtl: 2 });
    expect(await b.acquire({ timeout: 20 })).toBe(true);
    expect(a.isTaken).toBe(false);
    expect(await a.isAcquired()).toBe(false);
  });

  test('renews the TTL of a held lock, under the same key', async () => {
    const { name, a } = pair();
    await a.acquire({ lockTtl: 60 });
    const { lockKey, fencingToken } = a;
    expect(await a.acquire({ lockTtl: 90 })).toBe(true);
    expect(await queueOn(name)).toMatchObject([{ key: lockKey, value: a.uuid, ttl: recentTtl(90) }]);
    expect(a.fencingToken).toBe(fencingToken);
  });

  test('removes the expiry of a held lock if `lockTtl` is null', async () => {
    const { name, a } = pair();
    await a.acquire({ lockTtl: 60 });
    await a.acquire({ lockTtl: null });
    const [entry] = await queueOn(name);
    expect(entry).toMatchObject({ key: a.lockKey, value: a.uuid });
    expect(entry?.ttl).toBeUndefined();
  });

  test('appends a new key behind the others if its key is gone, and never re-creates the old key', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    const { lockKey, signal } = a;
    await b.acquire({ blocking: false });
    await raw('DELETE', lockKey);
    expect(await a.acquire({ blocking: false })).toBe(false);
    expect(await queueOn(name)).toMatchObject([{ value: b.uuid }, { value: a.uuid }]);
    expect(a.lockKey > b.lockKey).toBe(true);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(EtcdLockExpired);
  });

  test('runs the calls on one object one after another', async () => {
    const { name, a } = pair();
    expect(await Promise.all([a.acquire(), a.acquire({ lockTtl: 90 }), a.acquire({ lockTtl: 30 })])).toEqual([
      true,
      true,
      true,
    ]);
    expect(await queueOn(name)).toMatchObject([{ key: a.lockKey, ttl: recentTtl(30) }]);
  });

  test('times out while it waits for an earlier call on the same object, and does not affect that call', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    const first = b.acquire();
    await untilQueued(name, 2);
    expect(await rejection(b.acquire({ timeout: 0.05 }))).toBeInstanceOf(EtcdLockTimeout);
    await a.release();
    expect(await first).toBe(true);
  });
});

describe('acquire with blocking: false', () => {
  test('resolves to false on a taken lock and keeps its entry, which the next call renews', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    expect(await b.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    expect(b.isTaken).toBe(false);
    const { lockKey } = b;
    expect(await b.acquire({ blocking: false, lockTtl: 90 })).toBe(false);
    expect(await queueOn(name)).toMatchObject([{ value: a.uuid }, { key: lockKey, value: b.uuid, ttl: recentTtl(90) }]);
    await a.release();
    expect(await b.acquire({ blocking: false })).toBe(true);
    expect(b.lockKey).toBe(lockKey);
  });

  test('keeps an entry that release removes', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    await b.acquire({ blocking: false });
    await b.release();
    expect(await queueOn(name)).toMatchObject([{ value: a.uuid }]);
  });

  test('does not renew the entry it keeps, even with keepAlive, so that an abandoned entry expires', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    await b.acquire({ blocking: false, lockTtl: 2, keepAlive: true });
    await untilQueued(name, 1);
    expect(await queueOn(name)).toMatchObject([{ value: a.uuid }]);
  });
});

describe('an acquire that does not get the lock', () => {
  test('rejects with EtcdLockTimeout, names the holder, and leaves no key', async () => {
    const { name, a, b } = pair();
    await a.acquire({ lockTtl: 60 });
    const error = await rejection(b.acquire({ timeout: 2 }));
    expect(error).toBeInstanceOf(EtcdLockTimeout);
    expect(error).toMatchObject({
      holder: { key: a.lockKey, value: a.uuid, ttl: expect.any(Number) },
      message: expect.stringContaining(a.uuid),
    });
    // On a busy machine, the call does not wait for the end of the removal.
    expect(await untilQueued(name, 1)).toMatchObject([{ value: a.uuid }]);
  });

  test('times out with the failure of each member if etcd cannot be reached', async () => {
    const endpoints = ['http://127.0.0.1:1', 'http://127.0.0.1:2'];
    const lock = new Lock(useClient({ endpoints }), freshName());
    const error = await rejection(lock.acquire({ timeout: 2 }));
    expect(error).toBeInstanceOf(EtcdLockTimeout);
    expect(error).not.toHaveProperty('cause');
    const { message, failures } = error as EtcdLockTimeout;
    for (const endpoint of endpoints) {
      expect(message.split(`${endpoint}: connect ECONNREFUSED`)).toHaveLength(2);
      expect(failures).toContainEqual({ endpoint, error: expect.any(EtcdConnectionFailed) });
    }
  });

  test('rejects after three tries if the cluster has never answered and no timeout is given', async () => {
    const lock = new Lock(useClient({ endpoints: 'http://127.0.0.1:1' }), freshName());
    const error = await rejection(lock.acquire());
    expect(error).toBeInstanceOf(EtcdConnectionFailed);
    expect(error).toHaveProperty('message', expect.stringContaining('http://127.0.0.1:1'));
  });

  test('rejects with the abort reason itself and leaves no key', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    const abort = new AbortController();
    const waiting = rejection(b.acquire({ signal: abort.signal }));
    await untilQueued(name, 2);
    const reason = { any: 'value' };
    abort.abort(reason);
    expect(await waiting).toBe(reason);
    expect(await queueOn(name)).toMatchObject([{ value: a.uuid }]);
  });

  test('makes no request if the signal has aborted already', async () => {
    const { name, b } = pair();
    const reason = new Error('stop');
    expect(await rejection(b.acquire({ signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect((await raw('GET', `/_locks/${name}`)).status).toBe(404);
  });

  test('rejects with EtcdLockExpired, which names the holder, when its own key expires', async () => {
    const { name, a, b } = pair();
    await a.acquire({ lockTtl: 60 });
    const error = await rejection(b.acquire({ lockTtl: 2 }));
    expect(error).toBeInstanceOf(EtcdLockExpired);
    expect(error).toMatchObject({ holder: { key: a.lockKey, value: a.uuid } });
    expect(await queueOn(name)).toMatchObject([{ value: a.uuid }]);
  });

  test('rejects with EtcdLockExpired if somebody has removed its own key', async () => {
    const { name, a, b } = pair();
    await a.acquire({ lockTtl: 60 });
    const waiting = rejection(b.acquire());
    const [, own] = await untilQueued(name, 2);
    await raw('DELETE', own?.key ?? '');
    await a.release();
    expect(await waiting).toBeInstanceOf(EtcdLockExpired);
    expect(await queueOn(name)).toEqual([]);
  });
});

describe('release', () => {
  test('removes the key, and may be called again', async () => {
    const { name, a } = pair();
    await a.acquire();
    await a.release();
    expect(a.isTaken).toBe(false);
    expect(await queueOn(name)).toEqual([]);
    await a.release();
  });

  test('rejects with EtcdValueError if there never was an entry', async () => {
    const { a } = pair();
    const error = await rejection(a.release());
    expect(error).toBeInstanceOf(EtcdValueError);
    expect(error).toHaveProperty('message', 'No sequence present.');
    expect(() => a.lockKey).toThrow('No sequence present.');
    expect(() => a.fencingToken).toThrow(EtcdValueError);
  });

  test('removes a key that it finds by a chosen uuid', async () => {
    const { name, a } = pair();
    await a.acquire();
    await new Lock(useClient(), name, { uuid: a.uuid }).release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('ends a waiting acquire and removes its entry', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    const waiting = rejection(b.acquire());
    await untilQueued(name, 2);
    await b.release();
    expect(await waiting).toBeInstanceOf(EtcdLockReleased);
    expect(await queueOn(name)).toMatchObject([{ value: a.uuid }]);
  });

  test('does not remove its key if somebody has changed the value', async () => {
    const { name, a } = pair();
    await a.acquire();
    await raw('PUT', a.lockKey, { value: 'somebody-else' });
    await a.release();
    expect(await queueOn(name)).toMatchObject([{ key: a.lockKey, value: 'somebody-else' }]);
  });

  test('removes its key even if somebody has written the same value again', async () => {
    const { name, a } = pair();
    await a.acquire();
    await raw('PUT', a.lockKey, { value: a.uuid, ttl: '60' });
    await a.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('lets the same object acquire again, with a new key', async () => {
    const { a } = pair();
    await a.acquire();
    const { lockKey } = a;
    await a.release();
    expect(await a.acquire()).toBe(true);
    expect(a.lockKey > lockKey).toBe(true);
  });

  test('is called by disposal if there is an entry to remove', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    await a[Symbol.asyncDispose]();
    await b[Symbol.asyncDispose]();
    expect(await queueOn(name)).toEqual([]);
  });
});

describe('isAcquired', () => {
  test('is false before the first acquire, and while the lock waits in the queue', async () => {
    const { a, b } = pair();
    expect(await a.isAcquired()).toBe(false);
    await a.acquire();
    await b.acquire({ blocking: false });
    expect(await b.isAcquired()).toBe(false);
  });

  test('is false if the key is gone or has another value, and then the signal has aborted', async () => {
    for (const change of ['gone', 'rewritten']) {
      const { a } = pair();
      await a.acquire();
      const { signal } = a;
      await (change === 'gone' ? raw('DELETE', a.lockKey) : raw('PUT', a.lockKey, { value: 'other' }));
      expect(await a.isAcquired()).toBe(false);
      expect(a.isTaken).toBe(false);
      expect(signal.reason).toBeInstanceOf(EtcdLockExpired);
    }
  });
});

describe('setUuid', () => {
  test('adopts the entry of another Lock, which acquire then renews', async () => {
    const { name, a, b } = pair();
    await a.acquire({ lockTtl: 60 });
    await b.setUuid(a.uuid);
    expect(b.uuid).toBe(a.uuid);
    expect(b.lockKey).toBe(a.lockKey);
    expect(await b.isAcquired()).toBe(false);
    expect(await b.acquire({ lockTtl: 90 })).toBe(true);
    expect(await queueOn(name)).toMatchObject([{ key: a.lockKey, ttl: recentTtl(90) }]);
    await b.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('refuses a uuid that is not in the queue, and changes nothing', async () => {
    const { a, b } = pair();
    await a.acquire();
    const { uuid, lockKey } = a;
    const error = await rejection(a.setUuid(b.uuid));
    expect(error).toBeInstanceOf(EtcdValueError);
    expect(error).toHaveProperty('message', 'Inexistent UUID');
    expect(a).toMatchObject({ uuid, lockKey, isTaken: true });
  });

  test('removes the present own entry', async () => {
    const { name, a, b } = pair();
    await a.acquire();
    await b.acquire({ blocking: false });
    await b.setUuid(a.uuid);
    expect(await queueOn(name)).toMatchObject([{ key: a.lockKey }]);
    expect(await b.acquire({ blocking: false })).toBe(true);
  });

  test('adopts the lowest of several keys with the uuid, and removes the others', async () => {
    const { name, a } = pair();
    for (let i = 0; i < 3; i += 1) await raw('POST', `/_locks/${name}`, { value: 'twice' });
    const [lowest] = await queueOn(name);
    await a.setUuid('twice');
    expect(a.lockKey).toBe(lowest?.key);
    expect(await queueOn(name)).toMatchObject([{ key: a.lockKey }]);
  });
});

describe('a chosen uuid', () => {
  test('is searched in the queue before an entry is appended', async () => {
    const { name } = pair();
    const first = new Lock(useClient(), name, { uuid: 'node-1' });
    await first.acquire();
    const again = new Lock(useClient(), name, { uuid: 'node-1' });
    expect(await again.acquire({ blocking: false })).toBe(true);
    expect(again.lockKey).toBe(first.lockKey);
    expect(await queueOn(name)).toHaveLength(1);
  });
});

describe('contenders', () => {
  test('are listed in order, with key, value, rank and TTL', async () => {
    const { a, b } = pair();
    expect(await a.contenders()).toEqual([]);
    await a.acquire({ lockTtl: 60 });
    await b.acquire({ blocking: false, lockTtl: null });
    expect(await b.contenders()).toMatchObject([
      { key: a.lockKey, value: a.uuid, rank: a.fencingToken, ttl: 60 },
      { key: b.lockKey, value: b.uuid, rank: b.fencingToken, ttl: undefined },
    ]);
  });

  test('do not include the entries of a lock in a subdirectory', async () => {
    const { name, a } = pair();
    const inner = new Lock(useClient(), `${name}/5`);
    await inner.acquire();
    expect(await a.contenders()).toEqual([]);
    expect(await a.acquire({ blocking: false })).toBe(true);
  });
});
