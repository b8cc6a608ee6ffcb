import { describe, expect } from 'vitest';
import { requestsOf } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

/** Tests what etcd v2 guarantees, but other stores need not. */
export function onV2(test: ManagerTest): void {
  describe('a request', () => {
    test('uses the number in the key of its entry as the fencing token', async ({ lockName, queue, a }) => {
      await a.locks.request(lockName, (held) => {
        expect(held.fencingToken).toBe(BigInt(held.key.slice(queue.path.length + 1)));
      });
    });
  });

  describe('query', () => {
    test.for(['/', 'a//b', '..'])('refuses the name %j before any call', async (bad, { a }) => {
      const calls = requestsOf(a.client);
      await expect(a.locks.query(bad)).rejects.toThrow(RangeError);
      expect(calls()).toEqual([]);
    });
  });
}
