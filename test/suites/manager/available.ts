import { describe, expect } from 'vitest';
import { beforeNext, requestsOf } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

const MODES = ['exclusive', 'shared'] as const;
const PAIRS = MODES.flatMap((one) => MODES.map((other) => [one, other] as const));

const ifAvailable = true;

export function available(test: ManagerTest): void {
  describe('a request with ifAvailable', () => {
    test.for(MODES)('acquires a free lock and leaves no key: %s', async (mode, { lockName, queue, a }) => {
      const mine = await a.locks.request(lockName, { mode, ifAvailable }, async (held) => {
        expect(await queue.entries()).toMatchObject([{ key: held?.key }]);
        return held?.mode;
      });
      expect(mine).toBe(mode);
      expect(await queue.entries()).toEqual([]);
    });

    test.for(PAIRS)(
      'behind a hold (%s) of another process, in mode (%s), writes only if the lock is available',
      async ([mode, wanted], { lockName, queue, a, b }) => {
        const held = await a.locks.acquire(lockName, { mode });
        const calls = requestsOf(b.client);
        const got = await b.locks.request(lockName, { mode: wanted, ifAvailable }, (mine) => mine);
        expect(got?.mode).toBe(mode === 'shared' && wanted === 'shared' ? 'shared' : undefined);
        expect(calls()).toEqual(got ? ['read', 'append', 'remove'] : ['read']);
        expect(await queue.entries()).toMatchObject([{ key: held.key }]);
        await held.release();
      },
    );

    test.for(PAIRS)(
      'behind a hold (%s) of this process, in mode (%s), writes only if the lock is available',
      async ([mode, wanted], { lockName, queue, a }) => {
        const held = await a.locks.acquire(lockName, { mode });
        const calls = requestsOf(a.client);
        const got = await a.locks.request(lockName, { mode: wanted, ifAvailable }, (mine) => mine);
        expect(got?.mode).toBe(mode === 'shared' && wanted === 'shared' ? 'shared' : undefined);
        const unavailable = mode === 'exclusive' ? [] : ['read'];
        expect(calls()).toEqual(got ? ['read', 'append', 'remove'] : unavailable);
        expect(await queue.entries()).toMatchObject([{ key: held.key }]);
        await held.release();
      },
    );

    test('does not overtake a writer that waits behind readers, in this process or in another', async ({
      lockName,
      queue,
      a,
      b,
      makeProcess,
    }) => {
      const c = await makeProcess();
      const reader = await a.locks.acquire(lockName, { mode: 'shared' });
      const writer = b.locks.acquire(lockName);
      await queue.untilLength(2);
      for (const { client, locks } of [b, c]) {
        const calls = requestsOf(client);
        expect(await locks.acquire(lockName, { mode: 'shared', ifAvailable })).toBeNull();
        expect(calls().filter((call) => call !== 'read' && call !== 'wait')).toEqual([]);
      }
      await reader.release();
      await (await writer).release();
    });

    test('removes its entry when another entry was appended just before it', async ({ lockName, queue, a }) => {
      beforeNext(a.client, 'append', () => queue.put('somebody else'));
      expect(await a.locks.request(lockName, { ifAvailable }, (held) => held)).toBeNull();
      expect(await queue.values()).toEqual(['somebody else']);
    });

    test('does not block the next request of this process if the lock was not available', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const held = await b.locks.acquire(lockName);
      expect(await a.locks.acquire(lockName, { ifAvailable })).toBeNull();
      const next = a.locks.acquire(lockName);
      await queue.untilLength(2);
      await held.release();
      await (await next).release();
    });

    test('ends with the result or the error of its callback even if the lock is not available', async ({
      lockName,
      a,
      b,
    }) => {
      const held = await b.locks.acquire(lockName);
      const own = new Error('own');
      expect(await a.locks.request(lockName, { ifAvailable }, (none) => [none])).toEqual([null]);
      await expect(a.locks.request(lockName, { ifAvailable }, () => Promise.reject(own))).rejects.toBe(own);
      expect(own).not.toHaveProperty('lockError');
      await held.release();
    });

    test('acquires the lock for at most one of many concurrent requests', async ({ lockName, queue, a, b }) => {
      const got = await Promise.all(
        Array.from({ length: 6 }, (_, i) => (i % 2 ? a : b).locks.acquire(lockName, { ifAvailable })),
      );
      const holds = got.filter((held) => held !== null);
      expect(holds.length).toBeLessThanOrEqual(1);
      expect(await queue.entries()).toHaveLength(holds.length);
      for (const held of holds) expect(await held.release()).toBe(true);
    });
  });
}
