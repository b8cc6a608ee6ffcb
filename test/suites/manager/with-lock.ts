import { describe, expect } from 'vitest';
import { Lock } from '../../../src/python/lock.ts';
import type { LockMode } from '../../../src/recipe/entries/entry-value.ts';
import { SharedResource } from '../../support/shared-resource.ts';
import { nextWait } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

const MODES: readonly LockMode[] = ['exclusive', 'shared'];

export function withLock(test: ManagerTest): void {
  describe('a manager and a Lock', () => {
    test.for(MODES)('share one queue: a request (%s) waits for the Lock', async (mode, { lockName, queue, a, b }) => {
      const lock = new Lock(b.client, lockName);
      await lock.acquire();
      const waiting = a.locks.acquire(lockName, { mode });
      expect(await queue.untilLength(2)).toMatchObject([{ key: lock.lockKey, value: lock.uuid }, {}]);
      expect(await a.locks.query(lockName)).toMatchObject({ held: [{ uuid: lock.uuid }], pending: [{ mode }] });
      await lock.release();
      const held = await waiting;
      expect(held.fencingToken).toBeGreaterThan(lock.fencingToken);
      await held.release();
    });

    test.for(MODES)('share one queue: the Lock waits for a hold (%s)', async (mode, { lockName, queue, a, b }) => {
      const lock = new Lock(b.client, lockName);
      const held = await a.locks.acquire(lockName, { mode });
      const watched = nextWait(b.client);
      const waiting = lock.acquire();
      expect(await watched).toBe(held.key);
      expect(await queue.entries()).toHaveLength(2);
      expect(lock.isTaken).toBe(false);
      expect(await held.release()).toBe(true);
      expect(await waiting).toBe(true);
      await lock.release();
    });

    test('share one queue: the Lock waits for the last of several readers', async ({ lockName, queue, a, b }) => {
      const lock = new Lock(b.client, lockName);
      const holds = [];
      for (const _ of [1, 2, 3]) holds.push(await a.locks.acquire(lockName, { mode: 'shared' }));
      const waiting = lock.acquire();
      await queue.untilLength(4);
      const [last, ...others] = holds;
      for (const held of others) await held.release();
      await queue.untilLength(2);
      expect(lock.isTaken).toBe(false);
      await last?.release();
      expect(await waiting).toBe(true);
      await lock.release();
    });

    test('share one queue: a request waits for the entry of a non-blocking Lock', async ({ lockName, queue, a, b }) => {
      const held = await a.locks.acquire(lockName);
      const lock = new Lock(b.client, lockName);
      expect(await lock.acquire({ blocking: false })).toBe(false);
      await held.release();
      expect(await a.locks.acquire(lockName, { ifAvailable: true })).toBeNull();
      const next = a.locks.acquire(lockName);
      await queue.untilLength(2);
      expect(await lock.acquire({ blocking: false })).toBe(true);
      await lock.release();
      await (await next).release();
    });

    test('are served in queue order even on one client', async ({ lockName, queue, a }) => {
      const order: string[] = [];
      const lock = new Lock(a.client, lockName);
      const held = await a.locks.acquire(lockName);
      const acquired = lock.acquire().then(() => order.push('Lock'));
      await queue.untilLength(2);
      const next = a.locks.request(lockName, () => order.push('manager'));
      await held.release();
      await acquired;
      await queue.untilLength(2);
      expect(order).toEqual(['Lock']);
      await lock.release();
      await next;
      expect(order).toEqual(['Lock', 'manager']);
    });

    test('never overlap: only shared requests run together', async ({ lockName, queue, a, b, makeProcess }) => {
      const resource = new SharedResource();
      const c = await makeProcess();
      const use = (mode: LockMode) => resource.use(mode, () => queue.entries());
      const withLocks = async () => {
        const lock = new Lock(c.client, lockName);
        for (let i = 0; i < 5; i += 1) {
          await lock.acquire({ lockTtl: 60 });
          await use('exclusive');
          await lock.release();
        }
      };
      const requests = [a, b].flatMap(({ locks }) =>
        Array.from({ length: 9 }, (_, i) => {
          const mode = i % 3 === 0 ? 'exclusive' : 'shared';
          return locks.request(lockName, { mode }, () => use(mode));
        }),
      );
      await Promise.all([withLocks(), withLocks(), ...requests]);
      expect(await queue.entries()).toEqual([]);
    });
  });
}
