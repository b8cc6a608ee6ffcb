import { describe, expect } from 'vitest';
import { EtcdLockExpired } from '../../../src/errors.ts';
import { rejection } from '../../support/clients.ts';
import { untilExpiry } from '../stores/interventions.ts';
import { aborted, type LockTest, untilContenders } from './locks.ts';

export function holding(test: LockTest): void {
  describe.concurrent('the lease of an entry', () => {
    test('is renewed with keepAlive for several TTLs, for a holder and for a waiter', async ({ observer, a, b }) => {
      await a.acquire({ lockTtl: 5, keepAlive: true });
      const { signal } = a;
      const waiting = b.acquire({ lockTtl: 5, keepAlive: true });
      const before = await untilContenders(a, 2);
      await untilExpiry(observer, 11);
      expect(await a.isAcquired()).toBe(true);
      expect(signal.aborted).toBe(false);
      const after = await a.contenders();
      expect(after.map(({ key }) => key)).toEqual(before.map(({ key }) => key));
      await a.release();
      expect(await waiting).toBe(true);
      await b.release();
    });

    test('ends at its deadline without keepAlive, and aborts the signal', async ({ a }) => {
      const began = performance.now();
      await a.acquire({ lockTtl: 2 });
      const reason = await aborted(a.signal);
      expect(reason).toBeInstanceOf(EtcdLockExpired);
      expect(performance.now() - began).toBeGreaterThanOrEqual(1750);
      expect(a.isTaken).toBe(false);
      expect(await a.isAcquired()).toBe(false);
    });

    test('ends before another contender acquires the lock', async ({ a, b }) => {
      // The margin of a second outlasts most stalls of a busy machine: both contenders are in this process.
      await a.acquire({ lockTtl: 10 });
      const { signal } = a;
      expect(await b.acquire({ lockTtl: 60 })).toBe(true);
      expect(signal.reason).toBeInstanceOf(EtcdLockExpired);
      expect(a.isTaken).toBe(false);
      expect(b.fencingToken).toBeGreaterThan(a.fencingToken);
      await a.release();
      expect(await b.isAcquired()).toBe(true);
    });

    test('rejects the acquire if it ends during the wait, and the error names the holder', async ({ queue, a, b }) => {
      await a.acquire({ lockTtl: 60 });
      const error = await rejection(b.acquire({ lockTtl: 2 }), EtcdLockExpired);
      expect(error.holder).toMatchObject({ key: a.lockKey, value: a.uuid, ttl: expect.any(Number) });
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey }]);
    });

    test('is not renewed after a non-blocking acquire without success, even with keepAlive', async ({ a, b }) => {
      await a.acquire();
      expect(await b.acquire({ blocking: false, lockTtl: 5, keepAlive: true })).toBe(false);
      expect(await untilContenders(a, 1)).toMatchObject([{ value: a.uuid }]);
    });

    test('never ends with a TTL of null', async ({ observer, a, b }) => {
      await a.acquire({ lockTtl: 5 });
      await a.acquire({ lockTtl: null });
      const { signal } = a;
      await untilExpiry(observer, 5);
      expect(await b.acquire({ blocking: false })).toBe(false);
      expect(await a.isAcquired()).toBe(true);
      expect(signal.aborted).toBe(false);
    });

    test('ends when a renewal finds the key removed by somebody else', async ({ queue, a }) => {
      await a.acquire({ lockTtl: 2, keepAlive: true });
      const { signal } = a;
      await queue.remove(a.lockKey);
      expect(await aborted(signal)).toBeInstanceOf(EtcdLockExpired);
      expect(a.isTaken).toBe(false);
      expect(await queue.entries()).toEqual([]);
    });

    test('ends when a renewal finds another value in the key', async ({ queue, a }) => {
      await a.acquire({ lockTtl: 2, keepAlive: true });
      const { signal } = a;
      await queue.overwrite(a.lockKey, 'somebody else');
      expect(await aborted(signal)).toBeInstanceOf(EtcdLockExpired);
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey, value: 'somebody else' }]);
    });
  });

  describe('acquire of a lock already held', () => {
    test('renews the entry under the same key', async ({ queue, a }) => {
      await a.acquire({ lockTtl: 60 });
      const { lockKey, fencingToken, signal } = a;
      expect(await a.acquire({ lockTtl: 600 })).toBe(true);
      const [entry, ...others] = await queue.entries();
      expect(entry?.key).toBe(lockKey);
      expect(entry?.ttl).toBeGreaterThan(60);
      expect(others).toEqual([]);
      expect(a.fencingToken).toBe(fencingToken);
      expect(signal.aborted).toBe(false);
    });

    test('removes the expiry with a TTL of null', async ({ queue, a }) => {
      await a.acquire({ lockTtl: 60 });
      await a.acquire({ lockTtl: null });
      const [entry] = await queue.entries();
      expect(entry).toMatchObject({ key: a.lockKey, value: a.uuid, ttl: undefined });
    });

    test('appends a new entry behind the others when the key is gone, and aborts the old signal', async ({
      queue,
      a,
      b,
    }) => {
      await a.acquire();
      const { lockKey, signal, fencingToken } = a;
      await b.acquire({ blocking: false });
      await queue.remove(lockKey);
      expect(await a.acquire({ blocking: false })).toBe(false);
      expect(await queue.entries()).toMatchObject([{ value: b.uuid }, { value: a.uuid }]);
      expect(a.fencingToken).toBeGreaterThan(fencingToken);
      expect(signal.reason).toBeInstanceOf(EtcdLockExpired);
    });

    test('runs concurrent calls one after the other', async ({ queue, a }) => {
      const calls = [a.acquire(), a.acquire({ lockTtl: 60 }), a.acquire({ lockTtl: null })];
      expect(await Promise.all(calls)).toEqual([true, true, true]);
      const entries = await queue.entries();
      expect(entries).toMatchObject([{ key: a.lockKey, ttl: undefined }]);
    });
  });

  describe('isAcquired', () => {
    test('notices that the key was removed, and aborts the signal', async ({ queue, a }) => {
      await a.acquire();
      const { signal } = a;
      expect(a.isTaken).toBe(true);
      await queue.remove(a.lockKey);
      expect(await a.isAcquired()).toBe(false);
      expect(a.isTaken).toBe(false);
      expect(signal.reason).toBeInstanceOf(EtcdLockExpired);
    });

    test('notices that the key has another value', async ({ queue, a }) => {
      await a.acquire();
      await queue.overwrite(a.lockKey, 'somebody else');
      expect(await a.isAcquired()).toBe(false);
      expect(a.isTaken).toBe(false);
    });

    test('is false for a waiting entry', async ({ a, b }) => {
      await a.acquire();
      await b.acquire({ blocking: false });
      expect(await b.isAcquired()).toBe(false);
      expect(await a.isAcquired()).toBe(true);
    });
  });
}
