import { describe, expect } from 'vitest';
import { EtcdConnectionFailed, EtcdLockReleased } from '../../../src/errors.ts';
import { until } from '../../support/until.ts';
import { aborted } from '../lock/locks.ts';
import { failNextRemoval, hangRenewals, requestsOf } from '../stores/interventions.ts';
import { labelled, type ManagerTest } from './managers.ts';

export function acquire(test: ManagerTest): void {
  describe('acquire', () => {
    test('holds the lock until release(), which may be called again', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: 60 });
      expect(await queue.entries()).toMatchObject([{ key: held.key, value: labelled(held.uuid) }]);
      expect(held).toMatchObject({ name: lockName, mode: 'exclusive' });
      held.assertHeld();
      expect(await Promise.all([held.release(), held.release()])).toEqual([true, true]);
      expect(await held.release()).toBe(true);
      expect(await queue.entries()).toEqual([]);
      expect(() => held.assertHeld()).toThrow(EtcdLockReleased);
      expect(held.expiresIn()).toBe(0);
      expect(held.signal.aborted).toBe(false);
    });

    test('returns a hold that is invalid as soon as release() is called', async ({ lockName, a }) => {
      const held = await a.locks.acquire(lockName);
      const released = held.release();
      expect(() => held.assertHeld()).toThrow(EtcdLockReleased);
      expect(held.expiresIn()).toBe(0);
      await released;
    });

    test('holds the lock for the block of an `await using` declaration', async ({ lockName, queue, a }) => {
      {
        await using held = await a.locks.acquire(lockName);
        expect(await queue.entries()).toMatchObject([{ key: held.key }]);
      }
      expect(await queue.entries()).toEqual([]);
    });

    test('releases the lock when an `await using` block throws, and does not change the error', async ({
      lockName,
      queue,
      a,
    }) => {
      const own = new Error('own');
      const work = async () => {
        await using held = await a.locks.acquire(lockName);
        held.assertHeld();
        throw own;
      };
      await expect(work()).rejects.toBe(own);
      expect(await queue.entries()).toEqual([]);
    });

    test('releases nothing at the end of an `await using` block if the lock was not available', async ({
      lockName,
      queue,
      a,
    }) => {
      const { key } = await queue.put('holder');
      {
        await using held = await a.locks.acquire(lockName, { ifAvailable: true });
        expect(held).toBeNull();
      }
      expect(await queue.entries()).toMatchObject([{ key }]);
    });

    test('refuses the option reentrant before any call', async ({ lockName, a }) => {
      const calls = requestsOf(a.client);
      const options = { reentrant: true } as object;
      await expect(a.locks.acquire(lockName, options)).rejects.toThrow(TypeError);
      expect(calls()).toEqual([]);
    });
  });

  describe('release', () => {
    test('resolves to false after a loss', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: 2 });
      await queue.remove(held.key);
      const reason = await aborted(held.signal);
      expect(await held.release()).toBe(false);
      expect(await held.release()).toBe(false);
      expect(() => held.assertHeld()).toThrow(reason as Error);
    });

    test('does not reject when the key cannot be removed, and retries later', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName);
      failNextRemoval(a.client, new EtcdConnectionFailed('no way'));
      expect(await held.release()).toBe(true);
      await queue.untilLength(0);
    });

    test('aborts a renewal in flight and does not wait for it', async ({ lockName, queue, a }) => {
      const renewals = hangRenewals(a.client);
      const held = await a.locks.acquire(lockName, { ttl: 6 });
      await until(
        () => renewals.length,
        (count) => count === 1,
      );
      expect(renewals[0]?.aborted).toBe(false);
      expect(await held.release()).toBe(true);
      expect(renewals[0]?.aborted).toBe(true);
      expect(await queue.entries()).toEqual([]);
    });

    test('lets the next requests acquire the lock, in this process and in others', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const held = await a.locks.acquire(lockName);
      const other = b.locks.acquire(lockName);
      await queue.untilLength(2);
      const next = a.locks.acquire(lockName);
      await held.release();
      await (await other).release();
      expect(await (await next).release()).toBe(true);
    });
  });
}
