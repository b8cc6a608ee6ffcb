import { describe, expect } from 'vitest';
import { EtcdLockHeld } from '../../../src/errors.ts';
import { rejection } from '../../support/clients.ts';
import { until } from '../../support/until.ts';
import { requestsOf } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

export function release(test: ManagerTest): void {
  describe('release', () => {
    test('with force removes the holder: the next waiter acquires the lock, and the holder loses it', async ({
      lockName,
      queue,
      a,
      b,
      makeProcess,
    }) => {
      const held = await a.locks.acquire(lockName, { ttl: 3 });
      const next = b.locks.acquire(lockName);
      await queue.untilLength(2);
      const { locks } = await makeProcess();
      const removed = await locks.release(lockName, { force: true });
      expect(removed).toMatchObject([{ name: lockName, key: held.key, uuid: held.uuid, mode: 'exclusive' }]);
      const successor = await next;
      await until(
        () => held.signal.aborted,
        (aborted) => aborted,
      );
      expect(await held.release()).toBe(false);
      successor.assertHeld();
      await successor.release();
    });

    test('with force removes all shared holders, and no waiter', async ({ lockName, queue, a, b, makeProcess }) => {
      const readers = [a, b].map(({ locks }) => locks.acquire(lockName, { mode: 'shared', ttl: 600 }));
      const uuids = (await Promise.all(readers)).map(({ uuid }) => uuid);
      const third = await makeProcess();
      const writer = third.locks.acquire(lockName);
      await queue.untilLength(3);
      const removed = await third.locks.release(lockName, { force: true });
      expect(removed.map(({ uuid }) => uuid).sort()).toEqual(uuids.sort());
      await (await writer).release();
      for (const reader of readers) await (await reader).release();
    });

    test('resolves to nothing if nobody holds the lock', async ({ lockName, a }) => {
      expect(await a.locks.release(lockName, { force: true })).toEqual([]);
      expect(await a.locks.release(lockName, { uuid: 'nobody' })).toEqual([]);
    });

    test('with a uuid removes that entry only', async ({ lockName, queue, a, b }) => {
      const held = await a.locks.acquire(lockName);
      const left = await queue.put('left behind');
      const after = await queue.put('after it');
      expect(await b.locks.release(lockName, { uuid: 'left behind' })).toMatchObject([{ key: left.key }]);
      expect(await b.locks.query(lockName)).toMatchObject({ held: [{ key: held.key }], pending: [{ key: after.key }] });
      held.assertHeld();
      await held.release();
    });

    test('with a key removes that entry only', async ({ lockName, queue, a, b }) => {
      const held = await a.locks.acquire(lockName);
      await queue.put('left behind');
      await queue.put('after it');
      const [left, after] = (await b.locks.query(lockName)).pending;
      const key = left?.key ?? '';
      expect(await b.locks.release(lockName, { key })).toMatchObject([{ key, uuid: 'left behind' }]);
      expect((await b.locks.query(lockName)).pending).toMatchObject([{ key: after?.key }]);
      await held.release();
    });

    test('with a key and force removes an entry with an empty value', async ({ lockName, queue, a }) => {
      await queue.put('');
      const [holder] = (await a.locks.query(lockName)).held;
      const key = holder?.key ?? '';
      expect(await a.locks.release(lockName, { key, force: true })).toMatchObject([{ key, uuid: '' }]);
      expect(await queue.entries()).toEqual([]);
    });

    test('rejects with the holder if the uuid is the one of a holder and force is not set', async ({
      lockName,
      a,
      b,
    }) => {
      const held = await a.locks.acquire(lockName, { label: 'web-1' });
      const error = await rejection(b.locks.release(lockName, { uuid: held.uuid }), EtcdLockHeld);
      expect(error.holder).toMatchObject({ key: held.key, uuid: held.uuid, label: 'web-1' });
      expect(error.message).toContain('web-1');
      expect(error.message).toContain(lockName);
      expect(error.message).toContain(`${error.holder?.ttl} s left`);
      expect((await b.locks.query(lockName)).held).toMatchObject([{ key: held.key }]);
      const [removed] = await b.locks.release(lockName, { uuid: held.uuid, force: true });
      expect(removed?.ttl).toBeGreaterThan(0);
      expect(await b.locks.query(lockName)).toEqual({ held: [], pending: [] });
      await held.release();
    });

    test('refuses invalid arguments before any call', async ({ lockName, a }) => {
      const calls = requestsOf(a.client);
      const { locks } = a;
      await expect(locks.release('', { force: true })).rejects.toThrow(RangeError);
      await expect(locks.release(lockName, undefined as never)).rejects.toThrow(
        'options must be an object, got undefined',
      );
      await expect(locks.release(lockName, {})).rejects.toThrow(
        'force must be true to remove the entries of the holders of',
      );
      await expect(locks.release(lockName, {})).rejects.toThrow('held.release()');
      await expect(locks.release(lockName, { uuid: 1 as never })).rejects.toThrow('uuid must be a string, got 1');
      await expect(locks.release(lockName, { uuid: '' })).rejects.toThrow('uuid must not be empty');
      await expect(locks.release(lockName, { key: 1 as never })).rejects.toThrow('key must be a string, got 1');
      await expect(locks.release(lockName, { key: 'a', uuid: 'b' })).rejects.toThrow('must not both be set');
      await expect(locks.release(lockName, { force: 'yes' as never })).rejects.toThrow('got "yes"');
      await expect(locks.release(lockName, { forced: true } as never)).rejects.toThrow('did you mean "force"');
      expect(calls()).toEqual([]);
    });
  });
}
