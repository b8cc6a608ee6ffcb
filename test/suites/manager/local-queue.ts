import { AsyncLocalStorage } from 'node:async_hooks';
import { channel } from 'node:diagnostics_channel';
import { describe, expect } from 'vitest';
import { EtcdLockTimeout } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import type { RequestTrace } from '../../../src/manager/trace.ts';
import { rejection } from '../../support/clients.ts';
import { gate } from '../../support/gate.ts';
import { listenersOf } from '../../support/leaks.ts';
import { nextWait, requestsOf } from '../stores/interventions.ts';
import { DEFAULT_LABEL, labelled, type ManagerTest } from './managers.ts';

const shared = { mode: 'shared' } as const;

export function localQueue(test: ManagerTest): void {
  describe('requests of one process for one lock', () => {
    test('run in order with one entry at a time, and with a new entry each', async ({ lockName, queue, a }) => {
      const order: number[] = [];
      const ranks = await Promise.all(
        Array.from({ length: 6 }, (_, i) =>
          a.locks.request(lockName, async (held) => {
            order.push(i);
            const entries = await queue.entries();
            expect(entries).toMatchObject([{ key: held.key }]);
            return entries[0]?.rank ?? 0n;
          }),
        ),
      );
      expect(order).toEqual([0, 1, 2, 3, 4, 5]);
      expect(ranks.toSorted((x, y) => Number(x - y))).toEqual(ranks);
      expect(new Set(ranks).size).toBe(6);
    });

    test('wait for each other even with several managers on the client', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName);
      const calls = requestsOf(a.client);
      const next = new LockManager(a.client).acquire(lockName);
      await queue.entries();
      expect(calls()).toEqual([]);
      await held.release();
      await (await next).release();
    });

    test('let other processes acquire the lock in between', async ({ lockName, queue, a, b }) => {
      const order: string[] = [];
      const by = (who: string) => () => {
        order.push(who);
      };
      const held = await a.locks.acquire(lockName);
      const own = ['a1', 'a2'].map((who) => a.locks.request(lockName, by(who)));
      const other = b.locks.request(lockName, by('b'));
      await queue.untilLength(2);
      await held.release();
      await Promise.all([...own, other]);
      expect(order).toEqual(['b', 'a1', 'a2']);
    });

    test('do not wait for requests for another lock', async ({ lockName, a }) => {
      const held = await a.locks.acquire(lockName);
      await a.locks.request(`${lockName}-other`, () => held.assertHeld());
      await held.release();
    });

    test('are served after one that failed, was lost or timed out', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: 2 });
      const failing = expect(a.locks.request(lockName, () => Promise.reject('own'))).rejects.toBe('own');
      const hopeless = rejection(a.locks.acquire(lockName, { timeout: 0.05 }), EtcdLockTimeout);
      const last = a.locks.request(lockName, () => 'served');
      await hopeless;
      await queue.remove(held.key);
      await held.release();
      await failing;
      expect(await last).toBe('served');
    });

    test('run together if they are shared, but not before an earlier exclusive one', async ({ lockName, queue, a }) => {
      const order: string[] = [];
      const both = [gate(), gate()];
      const reads = (who: string, mine: number) =>
        a.locks.request(lockName, shared, async () => {
          both[mine]?.open();
          await Promise.all(both.map(({ opened }) => opened));
          order.push(who);
        });
      const first = await a.locks.acquire(lockName, shared);
      const writer = a.locks.request(lockName, () => {
        order.push('writer');
      });
      const readers = [reads('reader', 0), reads('reader', 1)];
      await queue.untilLength(2);
      expect(order).toEqual([]);
      await first.release();
      await Promise.all([writer, ...readers]);
      expect(order).toEqual(['writer', 'reader', 'reader']);
    });

    test('enter the queue, if they are exclusive, as soon as the shared ones before them have', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const readers = Promise.all([1, 2, 3].map(() => a.locks.acquire(lockName, shared)));
      const writer = a.locks.acquire(lockName);
      const entries = await queue.untilLength(4);
      const late = b.locks.acquire(lockName, shared);
      await queue.untilLength(5);
      for (const held of await readers) await held.release();
      const written = await writer;
      expect(written.key).toBe(entries[3]?.key);
      await written.release();
      await (await late).release();
    });
  });

  describe('a request that waits for its turn in the process', () => {
    test('names the holder when it times out, in this process or in another', async ({ lockName, a, b }) => {
      const held = await b.locks.acquire(lockName);
      const watched = nextWait(a.client);
      const head = a.locks.acquire(lockName);
      await watched;
      const options = { timeout: 2 };
      const first = await rejection(a.locks.acquire(lockName, options), EtcdLockTimeout);
      expect(first.holder).toMatchObject({ key: held.key, value: labelled(held.uuid), ttl: expect.any(Number) });
      await held.release();
      const own = await head;
      const second = await rejection(a.locks.acquire(lockName, options), EtcdLockTimeout);
      expect(second.holder).toMatchObject({ key: own.key, value: labelled(own.uuid), ttl: expect.any(Number) });
      expect(second.message).toContain(
        `not acquired within 2 s; held by this process (${DEFAULT_LABEL}, ${own.uuid}, `,
      );
      await own.release();
    });

    test('rejects with the reason of its signal, without a call, and leaves no listener', async ({ lockName, a }) => {
      const held = await a.locks.acquire(lockName);
      const calls = requestsOf(a.client);
      const abort = new AbortController();
      const reason = { any: 'value' };
      const ended = expect(a.locks.acquire(lockName, { signal: abort.signal })).rejects.toBe(reason);
      abort.abort(reason);
      await ended;
      expect(calls()).toEqual([]);
      expect(listenersOf(abort.signal)).toBe(0);
      await held.release();
    });

    test('leaves no entry if its signal aborts right after it got its turn', async ({
      lockName,
      queue,
      a,
      onTestFinished,
    }) => {
      const held = await a.locks.acquire(lockName);
      const calls = requestsOf(a.client);
      const abort = new AbortController();
      // Published right after the next request got its turn.
      const released = channel('tracing:etcd-v2-lock:request:released');
      const onReleased = (trace: unknown) => {
        if ((trace as RequestTrace).name === lockName) abort.abort('reason');
      };
      released.subscribe(onReleased);
      onTestFinished(() => {
        released.unsubscribe(onReleased);
      });
      const ended = expect(a.locks.acquire(lockName, { signal: abort.signal })).rejects.toBe('reason');
      await held.release();
      await ended;
      // A store that can replace the entry of the hold by that of the request has done so.
      expect([['remove'], ['append', 'remove']]).toContainEqual(calls());
      expect(await queue.entries()).toEqual([]);
    });

    test('runs its callback in the async context of its caller, not of the previous holder', async ({
      lockName,
      a,
    }) => {
      const context = new AsyncLocalStorage<string>();
      const held = await context.run('first', () => a.locks.acquire(lockName));
      const seen = ['second', 'third'].map((who) =>
        context.run(who, () => a.locks.request(lockName, () => context.getStore())),
      );
      await context.run('release', () => held.release());
      expect(await Promise.all(seen)).toEqual(['second', 'third']);
    });

    test('does not block the requests behind it when it is aborted', async ({ lockName, queue, a }) => {
      const abort = new AbortController();
      const reader = await a.locks.acquire(lockName, shared);
      const holder = await queue.put('holder');
      const writer = a.locks.acquire(lockName);
      await queue.untilLength(3);
      const gaveUp = expect(a.locks.acquire(lockName, { signal: abort.signal })).rejects.toBe('reason');
      const last = a.locks.acquire(lockName);
      abort.abort('reason');
      await gaveUp;
      await queue.remove(holder.key);
      await reader.release();
      await (await writer).release();
      expect(await (await last).release()).toBe(true);
    });
  });
}
