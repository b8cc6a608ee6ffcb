import { describe, expect } from 'vitest';
import { now } from '../../../src/base/time.ts';
import { EtcdConnectionFailed, EtcdLockExpired, EtcdLockLost, EtcdLockReleased } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import type { Entry } from '../../../src/recipe/store.ts';
import { rejection } from '../../support/clients.ts';
import { gate } from '../../support/gate.ts';
import { until } from '../../support/until.ts';
import { aborted } from '../lock/locks.ts';
import { beforeNext, failNextRenewal, hangRenewals, loseNextAnswer, requestsOf } from '../stores/interventions.ts';
import type { QueueView } from '../stores/store-client.ts';
import type { ManagerTest } from './managers.ts';

/** Far from every other TTL in these tests. */
const TTL = 600;
const LEAST = 90;

/** Expects that the entry is left to expire when `LEAST` seconds since the acquisition have passed. */
function expectKept([entry, ...others]: readonly Entry[], key?: string): void {
  expect(others).toEqual([]);
  expect(entry?.key).toBe(key);
  expect(entry?.ttl).toBeGreaterThan(0);
  expect(entry?.ttl).toBeLessThanOrEqual(LEAST);
}

/** Waits until the only entry has the TTL that {@link expectKept} expects. */
const untilKept = (queue: QueueView): Promise<readonly Entry[]> =>
  until(
    () => queue.entries(),
    ([entry]) => entry?.ttl !== undefined && entry.ttl <= LEAST,
  );

export function holdTimes(test: ManagerTest): void {
  describe.concurrent('the option holdAtLeast', () => {
    test.for([3, TTL])(
      'leaves the entry to expire after the callback has ended: TTL %i',
      async (ttl, { lockName, queue, a }) => {
        let key: string | undefined;
        const result = await a.locks.request(lockName, { ttl, holdAtLeast: LEAST }, (held) => {
          key = held.key;
          return 'result';
        });
        expect(result).toBe('result');
        const entries = await untilKept(queue);
        expectKept(entries, key);
        // Longer than the short TTL, if the machine was not stopped for a minute.
        expect(entries[0]?.ttl).toBeGreaterThan(3);
        await queue.remove(key ?? '');
      },
    );

    test('renews the entry once instead of removing it', async ({ lockName, queue, a }) => {
      const calls = requestsOf(a.client);
      const key = await a.locks.request(lockName, { holdAtLeast: LEAST }, (held) => held.key);
      expect(calls().filter((kind) => kind !== 'read')).toEqual(['append', 'renew']);
      await queue.remove(key);
    });

    test('lets a request with ifAvailable get null, in this process and in another', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const options = { ifAvailable: true, holdAtLeast: LEAST };
      const first = await a.locks.request(lockName, options, (held) => held?.key);
      for (const { locks } of [a, b]) expect(await locks.request(lockName, options, (held) => held)).toBeNull();
      expectKept(await untilKept(queue), first);
      await queue.remove(first ?? '');
    });

    test('lets a waiter get the lock when the time has passed, and not before', async ({ lockName, queue, a, b }) => {
      const since = now();
      const callback = gate();
      const first = a.locks.request(lockName, { holdAtLeast: 2 }, () => callback.opened);
      await queue.untilLength(1);
      const waiting = [a, b].map(({ locks }) => locks.request(lockName, () => now()));
      await queue.untilLength(2);
      callback.open();
      await first;
      for (const at of await Promise.all(waiting)) expect(at - since).toBeGreaterThanOrEqual(2000);
    });

    test('removes the entry if the time has passed when the callback ends', async ({ lockName, queue, a }) => {
      await a.locks.request(lockName, { holdAtLeast: 0.05 }, async () => {
        const from = now();
        await until(now, (at) => at - from > 60);
      });
      expect(await queue.entries()).toEqual([]);
    });

    test('keeps the entry if the callback throws', async ({ lockName, queue, a }) => {
      const own = new Error('own');
      let key = '';
      const failing = a.locks.request(lockName, { ttl: TTL, holdAtLeast: LEAST }, (held) => {
        key = held.key;
        throw own;
      });
      await expect(failing).rejects.toBe(own);
      expectKept(await untilKept(queue), key);
      await queue.remove(key);
    });

    test('is the manager’s by default, and 0 in a request turns it off', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ ttl: TTL, holdAtLeast: LEAST });
      await locks.request(lockName, { holdAtLeast: 0 }, () => undefined);
      expect(await queue.entries()).toEqual([]);
      const key = await locks.request(lockName, (held) => held.key);
      expectKept(await untilKept(queue), key);
      await queue.remove(key);
    });

    test('ends a hold without a callback at its release', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: TTL, holdAtLeast: LEAST });
      expect(await held.release()).toBe(true);
      expect(held.expiresIn()).toBe(0);
      expect(() => held.assertHeld()).toThrow(EtcdLockReleased);
      expect(held.signal.aborted).toBe(false);
      expectKept(await untilKept(queue), held.key);
      await queue.remove(held.key);
    });

    test('of a reentrant request has no effect on the hold that it joins', async ({ lockName, queue, a }) => {
      const options = { reentrant: true, holdAtLeast: LEAST };
      await a.locks.request(lockName, () => a.locks.request(lockName, options, () => undefined));
      expect(await queue.entries()).toEqual([]);
    });

    test('keeps the entry from a later request of this process with the same identity', async ({
      lockName,
      queue,
      a,
    }) => {
      const locks = new LockManager(a.client, { ttl: TTL, identity: 'me' });
      const key = await locks.request(lockName, { holdAtLeast: LEAST }, (held) => held.key);
      expect(await locks.acquire(lockName, { ifAvailable: true })).toBeNull();
      expectKept(await untilKept(queue), key);
      await queue.remove(key);
    });

    test('does not create the entry again if someone removed it', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: TTL, holdAtLeast: LEAST });
      beforeNext(a.client, 'renew', () => queue.remove(held.key));
      await held.release();
      expect(await queue.entries()).toEqual([]);
      await a.client.close();
      expect(await queue.entries()).toEqual([]);
    });

    test('keeps the entry if the answer to its last renewal is lost', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: TTL, holdAtLeast: LEAST });
      loseNextAnswer(a.client, 'renew');
      expect(await held.release()).toBe(true);
      expectKept(await untilKept(queue), held.key);
      await a.client.close();
      expectKept(await untilKept(queue), held.key);
      await queue.remove(held.key);
    });

    test('sets the last TTL in the background if that fails at first', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: TTL, holdAtLeast: LEAST });
      failNextRenewal(a.client, new EtcdConnectionFailed('no way'));
      expect(await held.release()).toBe(true);
      expectKept(await untilKept(queue), held.key);
      await queue.remove(held.key);
    });

    test('removes the entry in the background if the last TTL could not be set in time', async ({
      lockName,
      queue,
      a,
    }) => {
      const held = await a.locks.acquire(lockName, { ttl: TTL, holdAtLeast: 1 });
      hangRenewals(a.client);
      expect(await held.release()).toBe(true);
      await queue.untilLength(0);
    });

    test('keeps the entry while the client is closed', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: TTL, holdAtLeast: LEAST });
      const closed = a.client.close();
      await aborted(held.signal);
      expect(await held.release()).toBe(false);
      await closed;
      expectKept(await untilKept(queue), held.key);
      await queue.remove(held.key);
    });

    test('keeps the entry of a lost hold, if it still exists', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ ttl: 60, margin: 55 });
      const held = await locks.acquire(lockName, { holdAtLeast: LEAST });
      await aborted(held.signal);
      expect(await held.release()).toBe(false);
      const entries = await queue.entries();
      expectKept(entries, held.key);
      expect(entries[0]?.ttl).toBeGreaterThan(60);
      await queue.remove(held.key);
    });
  });

  describe.concurrent('the option maxHold', () => {
    test('ends a hold as lost, and the key stays until the callback has ended', async ({ lockName, queue, a }) => {
      let reason: unknown;
      const ended = rejection(
        a.locks.request(lockName, { ttl: TTL, maxHold: 0.2 }, async (held) => {
          reason = await aborted(held.signal);
          expect(held.expiresIn()).toBe(0);
          expect(() => held.assertHeld()).toThrow(reason as Error);
          expect(await queue.entries()).toMatchObject([{ key: held.key }]);
        }),
        EtcdLockLost,
      );
      const error = await ended;
      expect(error).toBe(reason);
      expect(error.message).toBe(`${queue.path} is no longer held: the maxHold of 0.2 s has passed`);
      expect(error.cause).toBeInstanceOf(EtcdLockExpired);
      expect(await queue.entries()).toEqual([]);
    });

    test('lets another process get the lock even if the callback never ends', async ({ lockName, a, makeProcess }) => {
      const c = await makeProcess();
      const [begun, done] = [gate(), gate()];
      let signal: AbortSignal | undefined;
      const ended = a.locks.request(lockName, { ttl: 2, maxHold: 1 }, (held) => {
        signal = held.signal;
        begun.open();
        return done.opened;
      });
      await begun.opened;
      const next = await c.locks.acquire(lockName);
      expect(signal?.reason).toBeInstanceOf(EtcdLockLost);
      expect(signal?.reason.message).toContain('maxHold');
      await next.release();
      done.open();
      await rejection(ended, EtcdLockLost);
    });

    test('is noticed without a timer after the event loop was blocked', async ({ lockName, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: TTL, maxHold: 0.3 });
      expect(held.expiresIn()).toBeLessThanOrEqual(0.3);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 350);
      expect(() => held.assertHeld()).toThrow('the maxHold of 0.3 s has passed');
      expect(held.expiresIn()).toBe(0);
      expect(await held.release()).toBe(false);
    });

    test('ends a hold once, if its release notices that first, and a listener then releases it, too', async ({
      lockName,
      queue,
      a,
    }) => {
      const held = await a.locks.acquire(lockName, { ttl: TTL, maxHold: 0.1 });
      const releases: Promise<boolean>[] = [];
      held.signal.addEventListener('abort', () => releases.push(held.release()));
      const waiting = [1, 2].map(() => a.locks.acquire(lockName, { ttl: TTL }));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
      releases.push(held.release());
      expect(releases).toHaveLength(2);
      expect(await Promise.all(releases)).toEqual([false, false]);
      for (const next of waiting) expect(await (await next).release()).toBe(true);
      expect(await queue.entries()).toEqual([]);
    });

    test('also ends the reentrant requests inside the hold', async ({ lockName, a }) => {
      const inner = { reentrant: true, maxHold: TTL };
      const request = a.locks.request(lockName, { maxHold: 0.2 }, async (outer) => {
        const joined = a.locks.request(lockName, inner, (held) => aborted(held.signal));
        expect(await rejection(joined, EtcdLockLost)).toBe(outer.signal.reason);
      });
      await rejection(request, EtcdLockLost);
    });

    test('of a reentrant request has no effect on the hold that it joins', async ({ lockName, a }) => {
      const inner = { reentrant: true, maxHold: 0.01 };
      await a.locks.request(lockName, { ttl: TTL }, async (outer) => {
        await a.locks.request(lockName, inner, async () => {
          const from = now();
          await until(now, (at) => at - from > 50);
        });
        outer.assertHeld();
      });
    });
  });
}
