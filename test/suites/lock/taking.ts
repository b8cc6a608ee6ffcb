import { describe, expect } from 'vitest';
import { ExclusiveResource } from '../../../compat/exclusive-resource.ts';
import { Lock } from '../../../src/python/lock.ts';
import { type LockTest, untilContenders } from './locks.ts';

export function taking(test: LockTest): void {
  describe('a free lock', () => {
    test('is acquired at once, by an entry with the uuid and the TTL', async ({ queue, a }) => {
      expect(a.isTaken).toBe(false);
      expect(await a.acquire({ lockTtl: 60 })).toBe(true);
      expect(a.path).toBe(queue.path);
      expect(a.lockKey.startsWith(`${a.path}/`)).toBe(true);
      const entries = await queue.entries();
      expect(entries).toMatchObject([{ key: a.lockKey, value: a.uuid, ttl: expect.any(Number) }]);
      expect(a.fencingToken).toBeGreaterThanOrEqual(entries[0]?.rank ?? 0n);
      expect(a.isTaken).toBe(true);
      expect(await a.isAcquired()).toBe(true);
      expect(a.signal.aborted).toBe(false);
    });

    test('is acquired without an expiry if the TTL is null', async ({ queue, a }) => {
      expect(await a.acquire({ lockTtl: null })).toBe(true);
      const [entry] = await queue.entries();
      expect(entry).toMatchObject({ value: a.uuid, ttl: undefined });
      expect((await a.contenders())[0]?.ttl).toBeUndefined();
    });

    test.for([
      'with space',
      'umläut',
      '中文 🔒',
      'a/b/c',
      '_hidden',
      'plus+sign',
      'q?x=1#tag',
      'percent%41',
      'quotes\'"`',
      'back\\slash',
      '[x]{y}|^<>',
      '...',
      '7',
    ])('can have the name %j', async (odd, { lockName, openAnother }) => {
      const make = async () => new Lock(await openAnother(), `${lockName}/${odd}`);
      const [a, b] = [await make(), await make()];
      expect(await a.acquire()).toBe(true);
      expect(a.lockKey.startsWith(`${a.path}/`)).toBe(true);
      const waiting = b.acquire();
      expect(await untilContenders(a, 2)).toMatchObject([{ value: a.uuid }, { value: b.uuid }]);
      await a.release();
      expect(await waiting).toBe(true);
      await b.release();
      expect(await a.contenders()).toEqual([]);
    });
  });

  describe('a taken lock', () => {
    test('makes acquire wait until the holder releases it', async ({ queue, a, b }) => {
      await a.acquire();
      const waiting = b.acquire();
      await untilContenders(a, 2);
      expect(b.isTaken).toBe(false);
      expect(await b.isAcquired()).toBe(false);
      await a.release();
      expect(await waiting).toBe(true);
      expect(b.fencingToken).toBeGreaterThan(a.fencingToken);
      expect(await queue.entries()).toMatchObject([{ key: b.lockKey, value: b.uuid }]);
    });

    test('is acquired by five waiters one at a time, in the order of their entries', async ({ makeLock }) => {
      const locks: Lock[] = [];
      const resource = new ExclusiveResource();
      const served: string[] = [];
      const turns: Promise<void>[] = [];
      const turn = async (lock: Lock) => {
        expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
        await resource.use(lock.uuid, async () => {
          served.push(lock.uuid);
          expect(await lock.isAcquired()).toBe(true);
        });
        await lock.release();
      };
      const first = await makeLock();
      await first.acquire();
      for (let i = 0; i < 5; i += 1) {
        const lock = await makeLock();
        locks.push(lock);
        turns.push(turn(lock));
        await untilContenders(first, i + 2);
      }
      await first.release();
      await Promise.all(turns);
      expect(served).toEqual(locks.map(({ uuid }) => uuid));
    });

    test('is held by one of five contenders at a time, with growing tokens, when each acquires it five times', async ({
      makeLock,
    }) => {
      const resource = new ExclusiveResource();
      const tokens: bigint[] = [];
      const locks = await Promise.all(Array.from({ length: 5 }, () => makeLock()));
      await Promise.all(
        locks.map(async (lock) => {
          for (let i = 0; i < 5; i += 1) {
            await lock.acquire({ lockTtl: 60 });
            await resource.use(lock.uuid, async () => {
              tokens.push(lock.fencingToken);
              await lock.contenders();
            });
            await lock.release();
          }
        }),
      );
      expect(tokens).toHaveLength(25);
      expect(tokens.toSorted((x, y) => Number(x - y))).toEqual(tokens);
      expect(new Set(tokens).size).toBe(25);
    });

    test('is not acquired by a waiter when its holder renews it', async ({ a, b }) => {
      await a.acquire({ lockTtl: 60 });
      const waiting = b.acquire();
      await untilContenders(a, 2);
      for (const lockTtl of [61, 62, null]) expect(await a.acquire({ lockTtl })).toBe(true);
      expect(await b.contenders()).toMatchObject([{ value: a.uuid }, { value: b.uuid }]);
      expect(b.isTaken).toBe(false);
      await a.release();
      expect(await waiting).toBe(true);
    });

    test('is acquired by the next waiter when the entry between has been released', async ({ a, b, makeLock }) => {
      const c = await makeLock();
      await a.acquire();
      await b.acquire({ blocking: false });
      const waiting = c.acquire();
      await untilContenders(a, 3);
      await b.release();
      expect(await a.contenders()).toMatchObject([{ value: a.uuid }, { value: c.uuid }]);
      expect(c.isTaken).toBe(false);
      await a.release();
      expect(await waiting).toBe(true);
    });
  });

  describe('a non-blocking acquire', () => {
    test('resolves to false and keeps its entry, which the next call renews', async ({ queue, a, b }) => {
      await a.acquire();
      expect(await b.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
      expect(b.isTaken).toBe(false);
      const { lockKey } = b;
      const [, entry] = await queue.entries();
      expect(entry).toMatchObject({ key: lockKey, value: b.uuid });
      expect(await b.acquire({ blocking: false, lockTtl: 600 })).toBe(false);
      const [, renewed] = await queue.entries();
      expect(renewed).toMatchObject({ key: lockKey, rank: entry?.rank });
      expect(renewed?.ttl).toBeGreaterThan(60);
      await a.release();
      expect(await b.acquire({ blocking: false })).toBe(true);
      expect(b.lockKey).toBe(lockKey);
    });

    test('keeps its entry ahead of later waiters', async ({ a, b, makeLock }) => {
      const c = await makeLock();
      await a.acquire();
      await b.acquire({ blocking: false });
      const waiting = c.acquire();
      await untilContenders(a, 3);
      await a.release();
      expect(await b.contenders()).toMatchObject([{ value: b.uuid }, { value: c.uuid }]);
      expect(await b.acquire({ blocking: false })).toBe(true);
      expect(c.isTaken).toBe(false);
      await b.release();
      expect(await waiting).toBe(true);
    });
  });
}
