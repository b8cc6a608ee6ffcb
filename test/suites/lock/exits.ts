import { describe, expect } from 'vitest';
import {
  EtcdClientClosed,
  EtcdConnectionFailed,
  EtcdLockExpired,
  EtcdLockReleased,
  EtcdLockTimeout,
  EtcdValueError,
} from '../../../src/errors.ts';
import { Lock } from '../../../src/python/lock.ts';
import { rejection } from '../../support/clients.ts';
import { listenersOf } from '../../support/leaks.ts';
import { failNextRemoval } from '../stores/interventions.ts';
import { type LockTest, untilContenders } from './locks.ts';

export function exits(test: LockTest): void {
  describe('an acquire that cannot get the lock', () => {
    test('rejects after its timeout, names the holder and leaves no key', async ({ queue, a, b }) => {
      await a.acquire({ lockTtl: 60 });
      const began = performance.now();
      const error = await rejection(b.acquire({ timeout: 2 }), EtcdLockTimeout);
      expect(performance.now() - began).toBeGreaterThanOrEqual(2000);
      expect(error.holder).toMatchObject({ key: a.lockKey, value: a.uuid, ttl: expect.any(Number) });
      expect(error.message).toContain(a.uuid);
      expect(b.isTaken).toBe(false);
      // On a busy machine, the call does not wait for the end of the removal.
      await queue.untilLength(1);
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey }]);
      expect(a.isTaken).toBe(true);
    });

    test('says whether the lock was held, or etcd could not be reached', async ({ lockName, openAnother, a, b }) => {
      await a.acquire({ lockTtl: 60 });
      // The second call waits for the end of the first one inside the process.
      const held = [2, 1.5].map((timeout) => rejection(b.acquire({ timeout }), EtcdLockTimeout));
      for (const error of await Promise.all(held)) expect(error.reason).toBe('held');
      const client = await openAnother();
      let isOver = false;
      client.intercept(({ send }) => (isOver ? send() : Promise.reject(new EtcdConnectionFailed('no way'))));
      const error = await rejection(new Lock(client, `${lockName}-free`).acquire({ timeout: 0.5 }), EtcdLockTimeout);
      expect(error).toMatchObject({
        reason: 'unreachable',
        message: expect.stringMatching(/; (no way|etcd has not answered)$/),
      });
      isOver = true;
    });

    test('names a holder that never expires', async ({ a, b }) => {
      await a.acquire({ lockTtl: null });
      const error = await rejection(b.acquire({ timeout: 2 }), EtcdLockTimeout);
      expect(error.holder).toMatchObject({ key: a.lockKey, value: a.uuid, ttl: undefined });
    });

    test('rejects with the reason of its signal, and leaves no key and no listener', async ({ queue, a, b }) => {
      await a.acquire();
      const abort = new AbortController();
      const reason = { any: 'value' };
      const ended = expect(b.acquire({ signal: abort.signal })).rejects.toBe(reason);
      await untilContenders(a, 2);
      abort.abort(reason);
      await ended;
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey }]);
      expect(listenersOf(abort.signal)).toBe(0);
    });

    test('appends no entry if its signal is already aborted', async ({ b }) => {
      const reason = { any: 'value' };
      await expect(b.acquire({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      expect(() => b.lockKey).toThrow('No sequence present.');
      expect(await b.contenders()).toEqual([]);
    });

    test('rejects when the waiting lock is released, and leaves no key', async ({ queue, a, b }) => {
      await a.acquire();
      const ended = rejection(b.acquire(), EtcdLockReleased);
      await untilContenders(a, 2);
      await b.release();
      await ended;
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey }]);
    });

    test('rejects when the client of the waiting lock is closed, and leaves no key', async ({
      queue,
      lockName,
      a,
      openAnother,
    }) => {
      const closing = await openAnother();
      const lock = new Lock(closing, lockName);
      await a.acquire();
      const ended = rejection(lock.acquire(), EtcdClientClosed);
      await untilContenders(a, 2);
      await closing.close();
      await ended;
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey }]);
    });

    test('rejects when its own key is removed, and leaves no key', async ({ queue, a, b }) => {
      await a.acquire({ lockTtl: 60 });
      const ended = rejection(b.acquire(), EtcdLockExpired);
      const [, own] = await untilContenders(a, 2);
      await queue.remove(own?.key ?? '');
      await a.release();
      await ended;
      expect(await queue.entries()).toEqual([]);
    });

    test('can be repeated with the same lock, and then has a greater token', async ({ a, b }) => {
      await a.acquire();
      await rejection(b.acquire({ timeout: 2 }), EtcdLockTimeout);
      const { fencingToken } = b;
      const waiting = b.acquire();
      await untilContenders(a, 2);
      await a.release();
      expect(await waiting).toBe(true);
      expect(b.fencingToken).toBeGreaterThan(fencingToken);
    });
  });

  describe('release', () => {
    test('removes the key, and may be called again, even concurrently', async ({ queue, a }) => {
      await a.acquire();
      const { signal, lockKey } = a;
      await Promise.all([a.release(), a.release()]);
      await a.release();
      expect(a.isTaken).toBe(false);
      expect(await a.isAcquired()).toBe(false);
      expect(signal.aborted).toBe(false);
      expect(a.lockKey).toBe(lockKey);
      expect(await queue.entries()).toEqual([]);
    });

    test('does not remove the key of another lock', async ({ queue, a, b }) => {
      await a.acquire();
      await b.acquire({ blocking: false });
      await b.release();
      await b.release();
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey }]);
      expect(await a.isAcquired()).toBe(true);
    });

    test('does not remove a key that has another value', async ({ queue, a }) => {
      await a.acquire();
      await queue.overwrite(a.lockKey, 'somebody else');
      await a.release();
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey, value: 'somebody else' }]);
    });

    test('of a lock that never had an entry rejects with EtcdValueError', async ({ a }) => {
      const error = await rejection(a.release(), EtcdValueError);
      expect(error.message).toBe('No sequence present.');
      expect(() => a.fencingToken).toThrow(EtcdValueError);
    });

    test('lets the same lock be acquired again, with a greater token', async ({ a }) => {
      await a.acquire();
      const { fencingToken } = a;
      await a.release();
      expect(await a.acquire()).toBe(true);
      expect(a.fencingToken).toBeGreaterThan(fencingToken);
    });

    test('that failed is retried before the lock is acquired again, with a greater token', async ({
      queue,
      lockName,
      openAnother,
    }) => {
      const client = await openAnother();
      const lock = new Lock(client, lockName);
      await lock.acquire();
      const { fencingToken } = lock;
      const failure = new EtcdConnectionFailed('no way');
      failNextRemoval(client, failure);
      await expect(lock.release()).rejects.toBe(failure);
      expect(await queue.values()).toEqual([lock.uuid]);
      expect(await lock.acquire()).toBe(true);
      expect(lock.fencingToken).toBeGreaterThan(fencingToken);
      expect(await queue.entries()).toMatchObject([{ key: lock.lockKey }]);
      await lock.release();
      expect(await queue.entries()).toEqual([]);
    });

    test('is called by Symbol.asyncDispose', async ({ queue, a, b }) => {
      await a.acquire();
      await b.acquire({ blocking: false });
      await b[Symbol.asyncDispose]();
      await a[Symbol.asyncDispose]();
      expect(await queue.entries()).toEqual([]);
    });
  });
}
