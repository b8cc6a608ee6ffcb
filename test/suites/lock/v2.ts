import { describe, expect } from 'vitest';
import type { OpenKeys } from '../keys-api/store.ts';
import type { LockTest } from './locks.ts';

/** Tests what etcd v2 guarantees, but other stores need not. */
export function onV2(lockTest: LockTest, open: OpenKeys): void {
  const test = lockTest.extend('keys', async ({ onTestFinished }) => {
    const keys = await open();
    onTestFinished(() => keys.close());
    return keys;
  });

  describe('an entry', () => {
    test('is named after the index of its append, which is the fencing token', async ({ keys, lockName, a }) => {
      await a.acquire({ lockTtl: 60 });
      expect(a.path).toBe(`${keys.lockPrefix}/${lockName}`);
      const { createdIndex } = (await keys.get(a.lockKey)).node;
      expect(a.lockKey).toBe(`${a.path}/${String(createdIndex).padStart(20, '0')}`);
      expect(a.fencingToken).toBe(BigInt(createdIndex));
    });

    test('is not created again by a renewal', async ({ keys, a, b }) => {
      await a.acquire({ lockTtl: 60 });
      await b.acquire({ blocking: false, lockTtl: 60 });
      const created = (await keys.get(b.lockKey)).node;
      await b.acquire({ blocking: false, lockTtl: 600 });
      const renewed = (await keys.get(b.lockKey)).node;
      expect(renewed.createdIndex).toBe(created.createdIndex);
      expect(renewed.modifiedIndex).toBeGreaterThan(created.modifiedIndex);
    });

    test('has no expiration with a TTL of null', async ({ keys, a }) => {
      await a.acquire({ lockTtl: 60 });
      expect((await keys.get(a.lockKey)).node).toHaveProperty('expiration');
      await a.acquire({ lockTtl: null });
      expect((await keys.get(a.lockKey)).node).not.toHaveProperty('expiration');
    });
  });

  describe('setUuid', () => {
    test('takes over the first of several keys with the uuid, and removes the others', async ({ queue, a }) => {
      for (let i = 0; i < 3; i += 1) await queue.put('twice');
      const [lowest] = await queue.entries();
      await a.setUuid('twice');
      expect(a.lockKey).toBe(lowest?.key);
      expect(await queue.entries()).toMatchObject([{ key: a.lockKey, value: 'twice' }]);
    });
  });
}
