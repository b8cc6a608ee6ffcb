import { describe, expect } from 'vitest';
import { Lock } from '../../../src/python/lock.ts';
import { requestsOf } from '../stores/interventions.ts';
import { DEFAULT_LABEL as label, type ManagerTest } from './managers.ts';

const ttl = expect.any(Number);

export function query(test: ManagerTest): void {
  describe('query', () => {
    test('of a lock that was never requested, or was released, returns no holder and no waiter', async ({
      lockName,
      a,
      b,
    }) => {
      const empty = { held: [], pending: [] };
      expect(await a.locks.query(lockName)).toEqual(empty);
      await b.locks.request(lockName, () => {});
      expect(await a.locks.query(lockName)).toEqual(empty);
    });

    test('returns holders and waiters in queue order, including entries of python-etcd', async ({
      lockName,
      queue,
      a,
      b,
      makeProcess,
    }) => {
      const named = await makeProcess({ identity: 'pod-1' });
      const held = await a.locks.acquire(lockName, { ttl: 600 });
      const reader = b.locks.acquire(lockName, { mode: 'shared' });
      await queue.untilLength(2);
      const last = named.locks.acquire(lockName, { mode: 'shared' });
      await queue.untilLength(3);
      const python = await queue.put('python');
      const seen = await b.locks.query(lockName);
      const of = (mode: string) => ({ name: lockName, mode, ttl, identity: undefined, label });
      expect(seen.held).toEqual([{ ...of('exclusive'), key: held.key, uuid: held.uuid }]);
      expect(seen.held[0]?.ttl).toBeGreaterThan(500);
      await held.release();
      const [second, third] = [await reader, await last];
      expect(seen.pending).toEqual([
        { ...of('shared'), key: second.key, uuid: second.uuid },
        { ...of('shared'), key: third.key, uuid: third.uuid, identity: 'pod-1' },
        { ...of('exclusive'), key: python.key, uuid: 'python', label: undefined },
      ]);
      // Later, less of each TTL may be left.
      const entries = seen.pending.map((entry) => ({ ...entry, ttl }));
      expect(await b.locks.query(lockName)).toEqual({ held: entries.slice(0, 2), pending: entries.slice(2) });
      for (const reads of [second, third]) await reads.release();
      expect((await b.locks.query(lockName)).held).toMatchObject([{ key: python.key }]);
    });

    test('returns no TTL for an entry that has none', async ({ lockName, a, b }) => {
      const lock = new Lock(b.client, lockName);
      await lock.acquire({ lockTtl: null });
      const [held] = (await a.locks.query(lockName)).held;
      expect(held).toMatchObject({ key: lock.lockKey, ttl: undefined });
      await lock.release();
    });

    test('leaves out requests that wait inside a process', async ({ lockName, a, b }) => {
      const held = await a.locks.acquire(lockName);
      const next = a.locks.acquire(lockName);
      expect(await b.locks.query(lockName)).toMatchObject({ held: [{ key: held.key }], pending: [] });
      await held.release();
      await (await next).release();
    });

    test('without a name returns all locks by name, including names below other names', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const names = [lockName, `${lockName}/7`, `${lockName}/a/b`];
      const holds = await Promise.all(names.map((name) => a.locks.acquire(name)));
      const next = b.locks.acquire(lockName);
      await queue.untilLength(2);
      const { held, pending } = await b.locks.query();
      const ours = held.filter(({ name }) => name.startsWith(lockName));
      expect(ours).toMatchObject(holds.map(({ name, key, uuid }) => ({ name, key, uuid })));
      expect(pending.filter(({ name }) => name.startsWith(lockName))).toMatchObject([{ name: lockName }]);
      expect((await b.locks.query(lockName)).held).toMatchObject([{ key: holds[0]?.key }]);
      for (const one of holds) await one.release();
      await (await next).release();
    });

    test('refuses the name "" before any call', async ({ a }) => {
      const calls = requestsOf(a.client);
      await expect(a.locks.query('')).rejects.toThrow(RangeError);
      await expect(a.locks.query(null as never)).rejects.toThrow(TypeError);
      expect(calls()).toEqual([]);
    });
  });
}
