import { describe, expect } from 'vitest';
import { addAbortListener, type Source } from '../../../src/base/cancellation.ts';
import { EtcdConnectionFailed, EtcdLockTimeout } from '../../../src/errors.ts';
import { Lock } from '../../../src/python/lock.ts';
import { rejection } from '../../support/clients.ts';
import { until } from '../../support/until.ts';
import { nextWait, openReads } from '../stores/interventions.ts';
import type { ManagerTest, Process } from './managers.ts';

const identity = 'pod-1';
const UUID = '0123456789abcdef0123456789abcdef';
/** Seconds: long enough to read the queue on a busy machine. */
const WAIT = { timeout: 5, ttl: 6 };
const unreachable = () => expect.unreachable();
const matching = (text: RegExp) => expect.stringMatching(text);
/** On a busy machine, a request of the store that the outage does not concern may not be answered in time. */
const FAILED_OR_LATE = matching(/; (no way|etcd has not answered)$/);

export function holders(test: ManagerTest): void {
  describe.concurrent('the holder that a timeout reports', () => {
    test('has the parts of its value, and says that it is this process', async ({ lockName, b, makeProcess }) => {
      const { locks } = await makeProcess({ identity, label: 'nightly' });
      const held = await locks.acquire(lockName, { mode: 'shared' });
      const { uuid, key } = held;
      const error = await rejection(b.locks.acquire(lockName, WAIT), EtcdLockTimeout);
      const value = `shared:id:${identity}:${uuid}@nightly`;
      const ttl = expect.any(Number);
      expect(error.holder).toEqual({ key, value, mode: 'shared', identity, label: 'nightly', uuid, ttl, own: true });
      expect(error.message).toMatch(
        new RegExp(`; held by this process \\(${identity}, nightly, ${uuid}, shared, ${key}, \\d+ s left\\)$`),
      );
      await held.release();
    });

    test('is that of this lock if a lock whose name begins with it and a "/" is held for longer', async ({
      lockName,
      a,
      b,
    }) => {
      const inner = await a.locks.acquire(`${lockName}/db`);
      const held = await a.locks.acquire(lockName);
      const error = await rejection(b.locks.acquire(lockName, WAIT), EtcdLockTimeout);
      expect(error.holder).toMatchObject({ key: held.key, ttl: expect.any(Number) });
      for (const each of [inner, held]) await each.release();
    });

    test('is named by its label if it is another process without an identity', async ({ lockName, queue, a }) => {
      const { key } = await queue.put(`${UUID}@web-1%3A17`);
      const error = await rejection(a.locks.acquire(lockName, WAIT), EtcdLockTimeout);
      expect(error.message).toContain(`; held by web-1:17 (${UUID}, ${key}, `);
    });

    test('is this process as long as the removal of its entry is retried', async ({ lockName, queue, a, b }) => {
      const held = await a.locks.acquire(lockName);
      let isReachable = false;
      a.client.intercept(async (request) => {
        if (request.kind === 'remove' && !isReachable) throw new EtcdConnectionFailed('no way');
        return request.send();
      });
      expect(await held.release()).toBe(true);
      const error = await rejection(b.locks.acquire(lockName, WAIT), EtcdLockTimeout);
      expect(error.holder).toMatchObject({ key: held.key, own: true });
      isReachable = true;
      await queue.untilLength(0);
    });

    test('is this process if a Lock of it keeps its entry without holding the lock', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const first = await queue.put('first');
      const lock = new Lock(b.client, lockName);
      expect(await lock.acquire({ blocking: false, lockTtl: 600 })).toBe(false);
      await queue.remove(first.key);
      const error = await rejection(a.locks.acquire(lockName, WAIT), EtcdLockTimeout);
      expect(error.holder).toMatchObject({ key: lock.lockKey, own: true });
      await lock.release();
    });

    test('is not this process if another client made an entry with the same value under another lock', async ({
      lockName,
      queue,
      b,
      a,
    }) => {
      const lock = new Lock(b.client, `${lockName}-other`, { uuid: 'chosen' });
      await lock.acquire({ lockTtl: 600 });
      await queue.put('chosen');
      const error = await rejection(a.locks.acquire(lockName, WAIT), EtcdLockTimeout);
      expect(error.holder).toMatchObject({ value: 'chosen', own: false });
      await lock.release();
    });
  });

  describe.concurrent('the reason of a timeout', () => {
    /** Makes each later request of the client fail. Returns a function that ends the outage. */
    const beginOutage = ({ client }: Process): (() => void) => {
      let isOver = false;
      client.intercept(({ send }) => (isOver ? send() : Promise.reject(new EtcdConnectionFailed('no way'))));
      return () => {
        isOver = true;
      };
    };

    test('is held, if another process holds the lock, or this process', async ({ lockName, a, b }) => {
      const held = await a.locks.acquire(lockName);
      const errors = [a, b].map(({ locks }) => rejection(locks.acquire(lockName, WAIT), EtcdLockTimeout));
      for (const error of await Promise.all(errors))
        expect(error).toMatchObject({ reason: 'held', holder: { key: held.key } });
      await held.release();
    });

    test('is held behind a holder of this process, even in an outage', async ({ lockName, a }) => {
      const held = await a.locks.acquire(lockName, { ttl: 600 });
      const endOutage = beginOutage(a);
      const error = await rejection(a.locks.acquire(lockName, { timeout: 0.1 }), EtcdLockTimeout);
      expect(error).toMatchObject({ reason: 'held', failures: [] });
      endOutage();
      await held.release();
    });

    test('is unreachable, if no request succeeds, also for those that wait inside the process', async ({
      lockName,
      a,
    }) => {
      const endOutage = beginOutage(a);
      const errors = [1, 0.9].map((timeout) => rejection(a.locks.acquire(lockName, { timeout }), EtcdLockTimeout));
      for (const error of await Promise.all(errors))
        expect(error).toMatchObject({ reason: 'unreachable', holder: undefined, message: FAILED_OR_LATE });
      endOutage();
    });

    test('is unreachable, if etcd is silent from the start', async ({ lockName, a }) => {
      let isOver = false;
      const silence = (signal: Source | undefined) =>
        new Promise((_, reject) => signal && addAbortListener(signal, reject));
      a.client.intercept(({ signal, send }) => (isOver ? send() : silence(signal)));
      const errors = [0.2, 0.1].map((timeout) => rejection(a.locks.acquire(lockName, { timeout }), EtcdLockTimeout));
      for (const error of await Promise.all(errors))
        expect(error).toMatchObject({ reason: 'unreachable', message: matching(/; etcd has not answered$/) });
      isOver = true;
    });

    test('is unreachable, if an outage begins behind a holder, who is named as the last one', async ({
      lockName,
      queue,
      a,
    }) => {
      const { key } = await queue.put('holder');
      const waiting = nextWait(a.client);
      const reads = openReads(a.client);
      const ended = rejection(a.locks.acquire(lockName, { ...WAIT, ttl: 600 }), EtcdLockTimeout);
      await waiting;
      // On v3, the holder is read beside the wait.
      await until(reads, (count) => count === 0);
      const endOutage = beginOutage(a);
      await queue.overwrite(key, 'holder'); // ends the wait
      await queue.remove(key);
      const error = await ended;
      expect(error).toMatchObject({ reason: 'unreachable', holder: { key } });
      expect(error.message).toMatch(/; last held by holder .*; no way$/);
      endOutage();
    });

    test('is held, if etcd can be reached again', async ({ lockName, queue, a }) => {
      const { key } = await queue.put('holder');
      let left = 2;
      a.client.intercept(({ send }) => (left-- > 0 ? Promise.reject(new EtcdConnectionFailed('no way')) : send()));
      const error = await rejection(a.locks.acquire(lockName, WAIT), EtcdLockTimeout);
      expect(left).toBeLessThan(0);
      expect(error).toMatchObject({ reason: 'held', holder: { key }, failures: [] });
    });
  });

  describe.concurrent('a request inside the callback that holds its lock', () => {
    const DEADLOCK = 'the request was made inside the callback that holds this lock';

    test.for(['request', 'acquire'] as const)('says so when %s() times out', async (method, { lockName, a }) => {
      await a.locks.request(lockName, async (held) => {
        const options = { timeout: 0.01 };
        const inner =
          method === 'request' ? a.locks.request(lockName, options, unreachable) : a.locks.acquire(lockName, options);
        const error = await rejection(inner, EtcdLockTimeout);
        expect(error.holder).toMatchObject({ key: held.key, own: true });
        expect(error.message).toContain(DEADLOCK);
        held.assertHeld();
      });
    });

    test('says so if both are shared, and a writer waits between them', async ({ lockName, queue, a, b }) => {
      const shared = { mode: 'shared' } as const;
      let writer: Promise<unknown> | undefined;
      await a.locks.request(lockName, shared, async () => {
        writer = b.locks.request(lockName, () => {});
        await queue.untilLength(2);
        const inner = a.locks.request(lockName, { ...shared, ...WAIT }, unreachable);
        expect((await rejection(inner, EtcdLockTimeout)).message).toContain(DEADLOCK);
      });
      await writer;
    });

    test('does not say so if that hold has ended before the timeout', async ({ lockName, queue, a }) => {
      const started = await a.locks.request(lockName, async () => {
        await queue.put('next');
        return [rejection(a.locks.request(lockName, WAIT, unreachable), EtcdLockTimeout)] as const;
      });
      const error = await started[0];
      expect(error.holder).toMatchObject({ value: 'next', own: false });
      expect(error.message).not.toContain(DEADLOCK);
    });
  });
}
