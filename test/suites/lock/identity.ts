import { describe, expect } from 'vitest';
import { EtcdValueError } from '../../../src/errors.ts';
import { Lock } from '../../../src/python/lock.ts';
import { rejection } from '../../support/clients.ts';
import { type LockTest, untilContenders } from './locks.ts';

export function identity(test: LockTest): void {
  describe('setUuid', () => {
    test('takes over the entry of another lock, which acquire then renews', async ({ queue, a, b }) => {
      await a.acquire({ lockTtl: 60 });
      await b.setUuid(a.uuid);
      expect(b).toMatchObject({ uuid: a.uuid, lockKey: a.lockKey, fencingToken: a.fencingToken, isTaken: false });
      expect(await b.isAcquired()).toBe(false);
      expect(await b.acquire({ lockTtl: 600 })).toBe(true);
      const [entry, ...others] = await queue.entries();
      expect(entry?.key).toBe(a.lockKey);
      expect(entry?.ttl).toBeGreaterThan(60);
      expect(others).toEqual([]);
      await b.release();
      expect(await queue.entries()).toEqual([]);
    });

    test('takes over an entry that is not first, and acquire waits with it', async ({ a, b, makeLock }) => {
      await a.acquire();
      await b.acquire({ blocking: false });
      const c = await makeLock();
      await c.setUuid(b.uuid);
      expect(await c.acquire({ blocking: false })).toBe(false);
      expect(c.lockKey).toBe(b.lockKey);
      await a.release();
      expect(await c.acquire()).toBe(true);
    });

    test('removes the previous entry of its lock', async ({ queue, a, b }) => {
      await a.acquire();
      await b.acquire({ blocking: false });
      await b.setUuid(a.uuid);
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey }]);
    });

    test('refuses a uuid that is not in the queue, and changes nothing', async ({ a, b }) => {
      await a.acquire();
      const { uuid, lockKey } = a;
      const error = await rejection(a.setUuid(b.uuid), EtcdValueError);
      expect(error.message).toBe('Inexistent UUID');
      expect(a).toMatchObject({ uuid, lockKey, isTaken: true });
      expect(await a.isAcquired()).toBe(true);
    });
  });

  describe('a uuid', () => {
    test('may have the maximum length while the name has the maximum length', async ({ openAnother, lockName }) => {
      const longest = lockName + 'ü'.repeat((750 - lockName.length) / 2);
      const uuid = 'ü'.repeat(125);
      // Each lock has its own connection, because etcd limits only the first request line of a connection.
      await new Lock(await openAnother(), longest, { uuid }).acquire({ lockTtl: 60 });
      const again = new Lock(await openAnother(), longest, { uuid });
      await again.setUuid(uuid);
      await again.release();
      expect(await again.contenders()).toEqual([]);
    });

    test('is new for each lock, and has 32 hex digits', ({ a, b }) => {
      expect(a.uuid).toMatch(/^[0-9a-f]{32}$/);
      expect(b.uuid).toMatch(/^[0-9a-f]{32}$/);
      expect(a.uuid).not.toBe(b.uuid);
    });

    test.for(['node-1', 'with space & more=1', 'ü 🔒'])('can be chosen: %j', async (uuid, { queue, makeLock }) => {
      const lock = await makeLock({ uuid });
      expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
      expect(await queue.entries()).toMatchObject([{ key: lock.lockKey, value: uuid }]);
      await lock.release();
      expect(await queue.entries()).toEqual([]);
    });

    test('that was chosen is searched for in the queue before an entry is appended', async ({ queue, makeLock }) => {
      const first = await makeLock({ uuid: 'node-1' });
      const again = await makeLock({ uuid: 'node-1' });
      await first.acquire();
      expect(await again.acquire({ blocking: false })).toBe(true);
      expect(again.lockKey).toBe(first.lockKey);
      expect(await queue.entries()).toHaveLength(1);
    });

    test('that was chosen lets a second Lock release the entry of the first', async ({ queue, makeLock }) => {
      const first = await makeLock({ uuid: 'node-1' });
      await first.acquire();
      await (await makeLock({ uuid: 'node-1' })).release();
      expect(await queue.entries()).toEqual([]);
    });
  });

  describe('contenders', () => {
    test('returns the entries in order, with key, uuid, rank and TTL', async ({ a, b, makeLock }) => {
      expect(await a.contenders()).toEqual([]);
      await a.acquire({ lockTtl: 60 });
      await b.acquire({ blocking: false, lockTtl: null });
      const observer = await makeLock();
      expect(await observer.contenders()).toMatchObject([
        { key: a.lockKey, value: a.uuid, rank: a.fencingToken, ttl: expect.any(Number) },
        { key: b.lockKey, value: b.uuid, rank: b.fencingToken, ttl: undefined },
      ]);
    });

    test('leaves out entries of locks with other names, including names below its own', async ({
      lockName,
      a,
      openAnother,
    }) => {
      const client = await openAnother();
      const others = [`${lockName}-2`, `${lockName}/5`, `${lockName}/b`].map((other) => new Lock(client, other));
      for (const other of others) expect(await other.acquire({ blocking: false })).toBe(true);
      expect(await a.contenders()).toEqual([]);
      expect(await a.acquire({ blocking: false })).toBe(true);
      for (const other of others) expect(await other.isAcquired()).toBe(true);
    });

    test('includes entries that no lock of this package created', async ({ queue, a }) => {
      const { key } = await queue.put('of python', 60);
      const waiting = a.acquire();
      expect(await untilContenders(a, 2)).toMatchObject([{ key, value: 'of python' }, { value: a.uuid }]);
      expect(a.isTaken).toBe(false);
      await queue.remove(key);
      expect(await waiting).toBe(true);
    });
  });
}
