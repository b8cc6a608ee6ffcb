import { channel } from 'node:diagnostics_channel';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { EtcdClientClosed, EtcdConnectionFailed, EtcdLockExpired, EtcdLockTimeout } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import type { RequestTrace } from '../../../src/manager/trace.ts';
import { rejection } from '../../support/clients.ts';
import { listenersOf } from '../../support/leaks.ts';
import { useStillClock } from '../../support/still-clock.ts';
import { until } from '../../support/until.ts';
import { nextWait, openReads, requestsOf } from '../stores/interventions.ts';
import type { StoreClient } from '../stores/store-client.ts';
import type { ManagerTest } from './managers.ts';

/** Seconds; an outage in these tests lasts longer. */
const TTL = 2;

/** Seconds: on etcd v3, a waiter whose entry was removed notices that by a renewal, after a third of it. */
const SHORT_TTL = 6;

const unreachable = () => expect.unreachable();

/** Records the `requeued` messages of requests for this lock. Calls `listener` with each. */
function requeuesOf(lockName: string, listener: (trace: RequestTrace) => void = () => {}): RequestTrace[] {
  const seen: RequestTrace[] = [];
  const requeued = channel('tracing:etcd-v2-lock:request:requeued');
  const note = (message: unknown) => {
    const trace = message as RequestTrace;
    if (trace.name !== lockName) return;
    seen.push({ ...trace });
    listener(trace);
  };
  requeued.subscribe(note);
  onTestFinished(() => void requeued.unsubscribe(note));
  return seen;
}

/** Makes every request of the client fail. Returns a function that ends the outage. */
function beginOutage(client: StoreClient): () => void {
  let down = true;
  client.intercept(({ send }) => (down ? Promise.reject(new EtcdConnectionFailed('etcd is down')) : send()));
  return () => {
    down = false;
  };
}

const appendsIn = (kinds: readonly string[]): number => kinds.filter((kind) => kind === 'append').length;

export function requeueing(test: ManagerTest): void {
  describe('a waiting request that loses its entry', () => {
    test.for(['exclusive', 'shared'] as const)(
      'queues up again at the end if somebody removed the entry: %s',
      async (mode, { lockName, queue, a }) => {
        const requeues = requeuesOf(lockName);
        const holder = await queue.put('holder');
        const waiting = a.locks.request(lockName, { mode, ttl: SHORT_TTL }, ({ key, uuid, fencingToken }) => ({
          key,
          uuid,
          fencingToken,
        }));
        const [, lost] = await queue.untilLength(2);
        const other = await queue.put('other');
        await queue.remove(lost?.key ?? '');
        // The holder's entry changes, so that the waiter reads the queue.
        await queue.overwrite(holder.key, 'holder');
        const [, , again] = await queue.untilLength(3);
        expect(again?.value).not.toBe(lost?.value);
        await queue.remove(holder.key);
        await queue.remove(other.key);
        const held = await waiting;
        expect(held.key).toBe(again?.key);
        expect(held.fencingToken).toBeGreaterThan(other.rank);
        expect(lost?.value).not.toContain(held.uuid);
        expect(requeues).toMatchObject([{ key: lost?.key, requeueCause: expect.any(EtcdLockExpired) }]);
        expect(await queue.entries()).toEqual([]);
      },
    );

    test.for([undefined, 'pod-1'])(
      'queues up again after an outage longer than the TTL (identity: %s)',
      async (identity, { lockName, queue, makeProcess }) => {
        const requeues = requeuesOf(lockName);
        const holder = await queue.put('holder');
        const { client, locks } = await makeProcess({ ttl: TTL, identity });
        const waiting = locks.acquire(lockName);
        const [, lost] = await queue.untilLength(2);
        const endOutage = beginOutage(client);
        await queue.untilLength(1);
        await until(
          () => requeues,
          ({ length }) => length === 1,
        );
        endOutage();
        const [, again] = await queue.untilLength(2);
        expect(again?.key).not.toBe(lost?.key);
        await queue.remove(holder.key);
        const held = await waiting;
        expect(held.key).toBe(again?.key);
        await held.release();
        expect(await queue.entries()).toEqual([]);
      },
    );

    test('rejects at its timeout, which the loss does not extend, and leaves no key', async ({
      lockName,
      queue,
      a,
    }) => {
      // Otherwise a timeout that begins again when the request queues up anew would only be late.
      useStillClock();
      const requeues = requeuesOf(lockName);
      const holder = await queue.put('holder');
      const waiting = nextWait(a.client);
      const reads = openReads(a.client);
      let isOver = false;
      const begin = performance.now();
      const ended = rejection(a.locks.request(lockName, { ttl: TTL, timeout: 4 }, unreachable), EtcdLockTimeout);
      void ended.then(() => (isOver = true));
      expect(await waiting).toBe(holder.key);
      // On etcd v3, the holder may be read while the request already waits.
      await until(reads, (open) => open === 0);
      const endOutage = beginOutage(a.client);
      const calls = requestsOf(a.client);
      await vi.advanceTimersByTimeAsync(1000 * TTL);
      // On etcd v3, a lease is created before, by a request that is really sent: the clock waits for its answer.
      await until(
        async () => {
          await vi.advanceTimersByTimeAsync(1);
          return appendsIn(calls());
        },
        (appends) => appends > 0,
      );
      await vi.advanceTimersByTimeAsync(begin + 3990 - performance.now());
      expect([requeues.length, isOver]).toEqual([1, false]);
      await vi.advanceTimersByTimeAsync(20);
      expect(isOver).toBe(true);
      const error = await ended;
      expect(error.message).toContain('etcd is down');
      expect(error.holder?.key).toBe(holder.key);
      endOutage();
      await until(
        async () => {
          await vi.advanceTimersByTimeAsync(100);
          return queue.values();
        },
        ({ length }) => length === 1,
      );
    });

    test('pauses longer and longer if somebody removes each of its entries at once', async ({ lockName, queue, a }) => {
      const pauses: number[] = [];
      let lostAt = 0;
      requeuesOf(lockName, () => {
        lostAt = performance.now();
      });
      a.client.intercept(({ kind, send }) => {
        if (kind === 'append' && lostAt > 0) pauses.push(performance.now() - lostAt);
        return send();
      });
      const holder = await queue.put('holder');
      const waiting = a.locks.acquire(lockName, { ttl: SHORT_TTL });
      for (let round = 0; round < 5; round += 1) {
        const [, own] = await queue.untilLength(2);
        await queue.remove(own?.key ?? '');
        await queue.overwrite(holder.key, `holder ${round}`);
        await until(
          () => pauses,
          ({ length }) => length > round,
        );
      }
      await queue.remove(holder.key);
      await (await waiting).release();
      // At least half of 100 ms, doubled each time; a timer may fire a millisecond early.
      for (const [round, pause] of pauses.entries()) expect(pause).toBeGreaterThan(50 * 2 ** round - 2);
    });

    test('rejects with the reason of its signal, and does not queue up again', async ({ lockName, queue, a }) => {
      const abort = new AbortController();
      const reason = new EtcdLockExpired('another lock expired');
      requeuesOf(lockName, () => abort.abort(reason));
      const holder = await queue.put('holder');
      const calls = requestsOf(a.client);
      const options = { ttl: SHORT_TTL, signal: abort.signal };
      const ended = expect(a.locks.request(lockName, options, unreachable)).rejects.toBe(reason);
      const [, own] = await queue.untilLength(2);
      await queue.remove(own?.key ?? '');
      await queue.overwrite(holder.key, 'holder');
      await ended;
      expect(appendsIn(calls())).toBe(1);
      expect(listenersOf(abort.signal)).toBe(0);
      expect(await queue.entries()).toMatchObject([{ key: holder.key }]);
    });

    test('ends at once if its signal aborts with an EtcdLockExpired while it waits', async ({ lockName, queue, a }) => {
      const requeues = requeuesOf(lockName);
      const abort = new AbortController();
      const reason = new EtcdLockExpired('another lock expired');
      const holder = await queue.put('holder');
      const ended = expect(a.locks.request(lockName, { signal: abort.signal }, unreachable)).rejects.toBe(reason);
      await queue.untilLength(2);
      abort.abort(reason);
      await ended;
      expect(requeues).toEqual([]);
      expect(await queue.entries()).toMatchObject([{ key: holder.key }]);
    });

    test('ends when the client is closed before it queues up again', async ({ lockName, queue, openUnclosed }) => {
      const client = await openUnclosed();
      let closed: Promise<void> | undefined;
      requeuesOf(lockName, () => {
        closed = client.close();
      });
      const holder = await queue.put('holder');
      const ended = rejection(
        new LockManager(client, { ttl: SHORT_TTL }).request(lockName, unreachable),
        EtcdClientClosed,
      );
      const [, own] = await queue.untilLength(2);
      await queue.remove(own?.key ?? '');
      await queue.overwrite(holder.key, 'holder');
      await ended;
      await closed;
      expect(await queue.entries()).toMatchObject([{ key: holder.key }]);
    });

    test('keeps its turn before later requests of its process', async ({ lockName, queue, a }) => {
      const order: string[] = [];
      const holder = await queue.put('holder');
      const both = ['first', 'second'].map((who) =>
        a.locks.request(lockName, { ttl: SHORT_TTL }, () => void order.push(who)),
      );
      const [, own] = await queue.untilLength(2);
      await queue.remove(own?.key ?? '');
      await queue.overwrite(holder.key, 'holder');
      await until(
        () => queue.entries(),
        (entries) => entries.length === 2 && entries[1]?.key !== own?.key,
      );
      await queue.remove(holder.key);
      await Promise.all(both);
      expect(order).toEqual(['first', 'second']);
      expect(await queue.entries()).toEqual([]);
    });
  });
}
