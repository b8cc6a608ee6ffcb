import { describe, expect } from 'vitest';
import {
  EtcdClientClosed,
  EtcdConnectionFailed,
  EtcdKeysLeft,
  EtcdLockExpired,
  EtcdLockLost,
} from '../../../src/errors.ts';
import type { Held } from '../../../src/manager/held.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { rejection } from '../../support/clients.ts';
import { gate } from '../../support/gate.ts';
import { aborted } from '../lock/locks.ts';
import { failNextRemoval, failRenewals, hangRenewals } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

/** Waits until the hold is lost. */
const lossOf = async (held: Held): Promise<EtcdLockLost> => (await aborted(held.signal)) as EtcdLockLost;

export function loss(test: ManagerTest): void {
  describe.concurrent('a lock that is lost', () => {
    test('because its entry is gone rejects the request with the reason of the signal', async ({
      lockName,
      queue,
      a,
    }) => {
      let reason: EtcdLockLost | undefined;
      const ended = rejection(
        a.locks.request(lockName, { ttl: 6 }, async (held) => {
          await queue.remove(held.key);
          reason = await lossOf(held);
          expect(() => held.assertHeld()).toThrow(reason);
          expect(held.expiresIn()).toBe(0);
          expect(reason.message).toContain(queue.path);
          expect(reason.message).toContain('gone');
          expect(reason.cause).toBeInstanceOf(EtcdLockExpired);
        }),
        EtcdLockLost,
      );
      expect(await ended).toBe(reason);
      expect(await queue.entries()).toEqual([]);
    });

    test('because its entry has another value does not remove that entry', async ({ lockName, queue, a }) => {
      const ended = rejection(
        a.locks.request(lockName, { ttl: 6 }, async (held) => {
          await queue.overwrite(held.key, 'somebody else');
          expect((await lossOf(held)).message).toContain('another value');
        }),
        EtcdLockLost,
      );
      await ended;
      expect(await queue.values()).toEqual(['somebody else']);
    });

    test('because renewals are not answered is reported before another process acquires it', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      hangRenewals(a.client);
      const held = await a.locks.acquire(lockName, { ttl: 5 });
      const next = b.locks.acquire(lockName);
      await queue.untilLength(2);
      const got = await next;
      expect(held.signal.reason).toBeInstanceOf(EtcdLockLost);
      expect(held.signal.reason.message).toContain('not renewed in time');
      expect(await held.release()).toBe(false);
      got.assertHeld();
      await got.release();
    });

    test('because renewals fail is reported with their error as the cause', async ({ lockName, a }) => {
      const failure = new EtcdConnectionFailed('no way');
      failRenewals(a.client, failure);
      const held = await a.locks.acquire(lockName, { ttl: 2 });
      const { cause } = await lossOf(held);
      expect(cause).toBeInstanceOf(EtcdLockExpired);
      expect((cause as EtcdLockExpired).cause).toBe(failure);
      await held.release();
    });

    test('is reported before its entry expires, because of the margin', async ({ lockName, queue, makeProcess }) => {
      const { client, locks } = await makeProcess({ margin: 8 });
      hangRenewals(client);
      const held = await locks.acquire(lockName, { ttl: 10 });
      await lossOf(held);
      const [entry] = await queue.entries();
      expect(entry?.key).toBe(held.key);
      expect(entry?.ttl).toBeGreaterThan(0);
      await held.release();
      expect(await queue.entries()).toEqual([]);
    });
  });

  describe.concurrent('the callback’s own error', () => {
    const losing = async (held: Held, queue: { remove(key: string): Promise<void> }, error: unknown) => {
      await queue.remove(held.key);
      await lossOf(held);
      throw error;
    };

    test('takes precedence over a loss, which is attached to it', async ({ lockName, queue, a }) => {
      const own = new Error('own');
      let held: Held | undefined;
      const ended = a.locks.request(lockName, { ttl: 2 }, (mine) => {
        held = mine;
        return losing(mine, queue, own);
      });
      await expect(ended).rejects.toBe(own);
      expect(own).toHaveProperty('lockError', held?.signal.reason);
    });

    test.for([Object.freeze(new Error('frozen')), 'text', undefined])(
      'takes precedence over a loss even if nothing can be attached to it: %s',
      async (own, { lockName, queue, a }) => {
        await expect(a.locks.request(lockName, { ttl: 2 }, (held) => losing(held, queue, own))).rejects.toBe(own);
        if (own instanceof Error) expect(own).not.toHaveProperty('lockError');
      },
    );

    test('has the loss of the inner hold attached if two nested holds are lost', async ({ lockName, observer, a }) => {
      const own = new Error('own');
      let inner: Held | undefined;
      const ended = a.locks.request(lockName, { ttl: 2 }, (outer) =>
        a.locks.request(`${lockName}-inner`, { ttl: 2 }, async (held) => {
          inner = held;
          for (const { name, key } of [outer, held]) await observer.view(name).remove(key);
          await Promise.all([lossOf(outer), lossOf(held)]);
          throw own;
        }),
      );
      await expect(ended).rejects.toBe(own);
      expect(own).toHaveProperty('lockError', inner?.signal.reason);
    });

    test('has nothing attached to it if it is the loss itself', async ({ lockName, queue, a }) => {
      const error = await rejection(
        a.locks.request(lockName, { ttl: 2 }, async (held) => {
          await queue.remove(held.key);
          throw await lossOf(held);
        }),
        EtcdLockLost,
      );
      expect(error).not.toHaveProperty('lockError');
    });

    test('takes precedence over a failed clean-up, which is attached to it and retried later', async ({
      lockName,
      queue,
      a,
    }) => {
      const own = new Error('own');
      const failure = new EtcdConnectionFailed('no way');
      const ended = a.locks.request(lockName, () => {
        failNextRemoval(a.client, failure);
        throw own;
      });
      await expect(ended).rejects.toBe(own);
      expect(own).toHaveProperty('lockError', failure);
      await queue.untilLength(0);
    });
  });

  describe('a process that was stopped until its hold expired', () => {
    /** Blocks the event loop until the hold has expired, so that no timer fires. */
    const stop = (held: Held) => {
      // Read before the clock: a pause of the process between the two reads can then only move the end to a later time.
      const left = held.expiresIn() * 1000;
      const end = performance.now() + left + 1;
      while (performance.now() < end);
    };

    test('is notified of the loss by the next assertHeld()', async ({ lockName, a }) => {
      const ended = a.locks.request(lockName, { ttl: 2 }, (held) => {
        stop(held);
        expect(held.signal.aborted).toBe(false);
        expect(() => held.assertHeld()).toThrow(EtcdLockLost);
        expect(held.signal.aborted).toBe(true);
      });
      await rejection(ended, EtcdLockLost);
    });

    test('is notified of the loss at the end of its request, if it does not check before', async ({ lockName, a }) => {
      await rejection(a.locks.request(lockName, { ttl: 2 }, stop), EtcdLockLost);
    });

    test('is notified of the loss by release()', async ({ lockName, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: 2 });
      stop(held);
      expect(await held.release()).toBe(false);
    });
  });

  test('a failed clean-up does not change the result, and is retried later', async ({ lockName, queue, a }) => {
    const result = await a.locks.request(lockName, () => {
      failNextRemoval(a.client, new EtcdConnectionFailed('no way'));
      return 'result';
    });
    expect(result).toBe('result');
    await queue.untilLength(0);
  });

  describe('closing the client of a hold', () => {
    test('aborts the signal of the hold, waits for the callback and removes the key', async ({
      lockName,
      queue,
      a,
    }) => {
      const queued = gate();
      const ended = rejection(
        a.locks.request(lockName, async (held) => {
          queued.open();
          expect((await lossOf(held)).cause).toBeInstanceOf(EtcdClientClosed);
          // The key still exists, so the callback has time to end its work.
          expect(await queue.entries()).toMatchObject([{ key: held.key }]);
        }),
        EtcdLockLost,
      );
      await queued.opened;
      await a.client.close();
      expect(await queue.entries()).toEqual([]);
      await ended;
    });

    test('lets the next process acquire the lock at once if the holder releases it then', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const held = await a.locks.acquire(lockName, { ttl: 600 });
      held.signal.addEventListener('abort', () => held.release());
      const next = b.locks.acquire(lockName);
      await queue.untilLength(2);
      await a.client.close();
      await (await next).release();
    });

    test('rejects after its timeout with the key of a callback that has not ended', async ({
      lockName,
      queue,
      openUnclosed,
    }) => {
      const client = await openUnclosed();
      const [begun, done] = [gate(), gate()];
      const work = () => {
        begun.open();
        return done.opened;
      };
      const ended = rejection(new LockManager(client).request(lockName, work), EtcdLockLost);
      await begun.opened;
      const error = await rejection(client.close({ timeout: 0.2 }), EtcdKeysLeft);
      const [entry] = await queue.entries();
      expect(error.keys).toContain(entry?.key);
      done.open();
      await ended;
    });
  });
}
