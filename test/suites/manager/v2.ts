import { describe, expect } from 'vitest';
import { EtcdLockExpired } from '../../../src/errors.ts';
import type { Append } from '../../../src/v2/keys-api.ts';
import { rejection } from '../../support/clients.ts';
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

  describe('a request with ifAvailable', () => {
    test('rejects if its entry is removed before its first read, and does not queue up again', async ({
      lockName,
      queue,
      a,
    }) => {
      const appended: string[] = [];
      a.client.intercept(async ({ kind, send }) => {
        const answer = await send();
        if (kind !== 'append') return answer;
        const { key } = (answer as Append).node;
        appended.push(key);
        await queue.remove(key);
        // No listing came with the append, so the queue is read now.
        return { ...(answer as Append), listing: Promise.resolve(undefined) };
      });
      await rejection(a.locks.acquire(lockName, { ifAvailable: true }), EtcdLockExpired);
      expect(appended).toHaveLength(1);
      expect(await queue.entries()).toEqual([]);
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
