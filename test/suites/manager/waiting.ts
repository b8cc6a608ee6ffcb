import { describe, expect } from 'vitest';
import { EtcdClientClosed, EtcdLockLost, EtcdLockTimeout } from '../../../src/errors.ts';
import { rejection } from '../../support/clients.ts';
import { gate } from '../../support/gate.ts';
import { listenersOf } from '../../support/leaks.ts';
import { duringNext, requestsOf, untilExpiry } from '../stores/interventions.ts';
import { labelled, type ManagerTest } from './managers.ts';

const unreachable = () => expect.unreachable();

export function waiting(test: ManagerTest): void {
  describe('a request for a lock that another process holds', () => {
    test('waits until that process releases it', async ({ lockName, queue, a, b }) => {
      const held = await a.locks.acquire(lockName);
      const waiting = b.locks.request(lockName, ({ fencingToken }) => fencingToken);
      expect(await queue.untilLength(2)).toMatchObject([{ key: held.key }, {}]);
      await held.release();
      expect(await waiting).toBeGreaterThan(held.fencingToken);
      expect(await queue.entries()).toEqual([]);
    });

    test('waits until the holder’s entry expires', async ({ lockName, queue, a }) => {
      const { rank } = await queue.put('gone for good', 1);
      const held = await a.locks.acquire(lockName);
      const entries = await queue.entries();
      expect(entries).toMatchObject([{ key: held.key }]);
      expect(entries[0]?.rank).toBeGreaterThan(rank);
      await held.release();
    });

    test('is not overtaken when another waiter gives up', async ({ lockName, queue, a, b }) => {
      const { key } = await queue.put('holder');
      const gone = await queue.put('gives up');
      const one = a.locks.request(lockName, (held) => held.key);
      const [, , first] = await queue.untilLength(3);
      const other = b.locks.request(lockName, (held) => held.key);
      const [, , , second] = await queue.untilLength(4);
      await queue.remove(gone.key);
      await queue.remove(key);
      expect(await Promise.all([one, other])).toEqual([first?.key, second?.key]);
    });
  });

  // The timeouts are long enough to read the queue on a busy machine.
  describe.concurrent('a timeout', () => {
    test('rejects the request, names the holder and leaves no key', async ({ lockName, queue, a, b }) => {
      const held = await a.locks.acquire(lockName);
      const error = await rejection(b.locks.request(lockName, { timeout: 5, ttl: 600 }, unreachable), EtcdLockTimeout);
      expect(error.holder).toMatchObject({ key: held.key, value: labelled(held.uuid), ttl: expect.any(Number) });
      expect(error.message).toContain(`${held.uuid}, ${held.key}, `);
      // On a busy machine, the call does not wait for the end of the removal.
      await queue.untilLength(1);
      expect(await queue.entries()).toMatchObject([{ key: held.key }]);
      await held.release();
    });

    test('is the timeout of the manager if the request has none', async ({ lockName, queue, makeProcess }) => {
      const { key } = await queue.put('holder');
      const { locks } = await makeProcess({ timeout: 5, ttl: 6 });
      const error = await rejection(locks.request(lockName, unreachable), EtcdLockTimeout);
      expect(error.holder?.key).toBe(key);
    });
  });

  describe.concurrent('the lease of an entry', () => {
    test('is renewed for several TTLs, for a holder and for a waiter', async ({ lockName, observer, queue, a, b }) => {
      const held = await a.locks.acquire(lockName, { ttl: 6 });
      const waiting = b.locks.acquire(lockName, { ttl: 6 });
      const before = await queue.untilLength(2);
      await untilExpiry(observer, 13);
      held.assertHeld();
      expect(await queue.entries()).toMatchObject(before.map(({ key, value }) => ({ key, value })));
      await held.release();
      expect((await waiting).key).toBe(before[1]?.key);
      await (await waiting).release();
    });

    test('is renewed for several TTLs, for several readers', async ({ lockName, observer, queue, a, b }) => {
      const options = { mode: 'shared', ttl: 6 } as const;
      const holds = [await a.locks.acquire(lockName, options), await b.locks.acquire(lockName, options)];
      await untilExpiry(observer, 13);
      for (const held of holds) held.assertHeld();
      expect(await queue.entries()).toMatchObject(holds.map(({ key }) => ({ key })));
      for (const held of holds) await held.release();
    });
  });

  describe('a request', () => {
    test('makes no call if its signal is already aborted', async ({ lockName, a }) => {
      const calls = requestsOf(a.client);
      const signal = AbortSignal.abort('reason');
      await expect(a.locks.request(lockName, { signal }, unreachable)).rejects.toBe('reason');
      await expect(a.locks.acquire(lockName, { signal })).rejects.toBe('reason');
      expect(calls()).toEqual([]);
    });

    test.for(['exclusive', 'shared'] as const)(
      'rejects with the reason of its signal, and leaves no key and no listener: %s',
      async (mode, { lockName, queue, a }) => {
        const { key } = await queue.put('holder');
        const abort = new AbortController();
        const reason = { any: 'value' };
        const ended = expect(a.locks.request(lockName, { mode, signal: abort.signal }, unreachable)).rejects.toBe(
          reason,
        );
        await queue.untilLength(2);
        abort.abort(reason);
        await ended;
        expect(await queue.entries()).toMatchObject([{ key }]);
        expect(listenersOf(abort.signal)).toBe(0);
      },
    );

    test('leaves no key when its signal aborts during the append', async ({ lockName, queue, a }) => {
      const abort = new AbortController();
      duringNext(a.client, 'append', () => abort.abort('reason'));
      await expect(a.locks.request(lockName, { signal: abort.signal }, unreachable)).rejects.toBe('reason');
      expect(await queue.entries()).toEqual([]);
    });

    test('ignores its signal once the lock is held', async ({ lockName, queue, a }) => {
      const abort = new AbortController();
      const { signal } = abort;
      await a.locks.request(lockName, { signal }, async (held) => {
        expect(listenersOf(signal)).toBe(0);
        abort.abort();
        held.assertHeld();
        expect(held.signal.aborted).toBe(false);
        expect(await queue.entries()).toMatchObject([{ key: held.key }]);
      });
    });
  });

  describe('a client that is closed', () => {
    test('rejects its waiting requests, inside the process and in the queue, and leaves no key', async ({
      lockName,
      queue,
      a,
    }) => {
      const { key } = await queue.put('holder');
      const ended = [1, 2, 3].map(() => rejection(a.locks.request(lockName, unreachable), EtcdClientClosed));
      await queue.untilLength(2);
      await a.client.close();
      await Promise.all(ended);
      expect(await queue.entries()).toMatchObject([{ key }]);
    });

    test('refuses further requests, even while a callback still runs', async ({ lockName, queue, a }) => {
      const [begun, done] = [gate(), gate()];
      const work = () => {
        begun.open();
        return done.opened;
      };
      const lost = rejection(a.locks.request(lockName, work), EtcdLockLost);
      await begun.opened;
      const closed = a.client.close();
      await rejection(a.locks.request(lockName, unreachable), EtcdClientClosed);
      await rejection(a.locks.request(`${lockName}/free`, unreachable), EtcdClientClosed);
      done.open();
      await closed;
      await lost;
      expect(await queue.entries()).toEqual([]);
    });
  });
}
