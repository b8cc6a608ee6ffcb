import { describe, expect } from 'vitest';
import { beforeNext, requestsOf } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

const MODES = ['exclusive', 'shared'] as const;
const PAIRS = MODES.flatMap((one) => MODES.map((other) => [one, other] as const));

const ifAvailable = true;

export function available(test: ManagerTest): void {
  describe('a request with ifAvailable', () => {
    test.for(MODES)('runs with a free lock held, and leaves no key: %s', async (mode, { lockName, queue, a }) => {
      const mine = await a.locks.request(lockName, { mode, ifAvailable }, async (held) => {
        expect(await queue.entries()).toMatchObject([{ key: held?.key }]);
        return held?.mode;
      });
      expect(mine).toBe(mode);
      expect(await queue.entries()).toEqual([]);
    });

    test.for(PAIRS)(
      'beside a hold (%s) of another process asks (%s) and writes nothing in vain',
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
      'beside a hold (%s) of this process asks (%s) and writes nothing in vain',
      async ([mode, wanted], { lockName, queue, a }) => {
        const held = await a.locks.acquire(lockName, { mode });
        const calls = requestsOf(a.client);
        const got = await a.locks.request(lockName, { mode: wanted, ifAvailable }, (mine) => mine);
        expect(got?.mode).toBe(mode === 'shared' && wanted === 'shared' ? 'shared' : undefined);
        const inVain = mode === 'exclusive' ? [] : ['read'];
        expect(calls()).toEqual(got ? ['read', 'append', 'remove'] : inVain);
        expect(await queue.entries()).toMatchObject([{ key: held.key }]);
        await held.release();
      },
    );

    test('overtakes no writer that waits behind readers, be it of this process or of another', async ({
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

    test('gives its entry back when another came first in the last moment', async ({ lockName, queue, a }) => {
      beforeNext(a.client, 'append', () => queue.put('somebody else'));
      expect(await a.locks.request(lockName, { ifAvailable }, (held) => held)).toBeNull();
      expect(await queue.values()).toEqual(['somebody else']);
    });

    test('lets the next of this process go on when it was in vain', async ({ lockName, queue, a, b }) => {
      const held = await b.locks.acquire(lockName);
      expect(await a.locks.acquire(lockName, { ifAvailable })).toBeNull();
      const next = a.locks.acquire(lockName);
      await queue.untilLength(2);
      await held.release();
      await (await next).release();
    });

    test('has its result, and its error, from the callback also in vain', async ({ lockName, a, b }) => {
      const held = await b.locks.acquire(lockName);
      const own = new Error('own');
      expect(await a.locks.request(lockName, { ifAvailable }, (none) => [none])).toEqual([null]);
      await expect(a.locks.request(lockName, { ifAvailable }, () => Promise.reject(own))).rejects.toBe(own);
      expect(own).not.toHaveProperty('lockError');
      await held.release();
    });

    test('gets all or nothing of many at once', async ({ lockName, queue, a, b }) => {
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
