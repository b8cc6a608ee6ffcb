import { describe, expect } from 'vitest';
import { EtcdLockExpired, EtcdLockLost, EtcdLockTimeout } from '../../../src/errors.ts';
import type { LockMode } from '../../../src/recipe/entries/entry-value.ts';
import { rejection } from '../../support/clients.ts';
import { aborted } from '../lock/locks.ts';
import { beforeNext, nextWait } from '../stores/interventions.ts';
import { labelled, type ManagerTest } from './managers.ts';

const identity = 'pod-1';
/** Values of leftover entries, as a dead process with this identity leaves them. */
const LEFT = { exclusive: `id:${identity}:0badc0de`, shared: `shared:id:${identity}:0badc0de` } as const;
const MODES: readonly LockMode[] = ['exclusive', 'shared'];

export function identities(test: ManagerTest): void {
  describe('a process with an identity', () => {
    test('writes the identity into its entries, with a new uuid each time', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
      const { locks } = await makeProcess({ identity });
      const uuids: string[] = [];
      for (const _ of [1, 2])
        await locks.request(lockName, async (held) => {
          uuids.push(held.uuid);
          expect(await queue.values()).toEqual([labelled(`id:${identity}:${held.uuid}`)]);
        });
      expect(new Set(uuids).size).toBe(2);
    });

    test('can use another identity for one request', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ identity });
      await locks.request(lockName, { identity: 'a:b' }, async ({ uuid }) => {
        expect(await queue.values()).toEqual([labelled(`id:a:b:${uuid}`)]);
      });
    });

    test.for(MODES.flatMap((left) => MODES.map((mode) => [left, mode] as const)))(
      'evicts the leftover entry (%s) of its dead predecessor instead of waiting (%s)',
      async ([left, mode], { lockName, queue, makeProcess }) => {
        const { locks } = await makeProcess({ identity });
        const dead = await queue.put(LEFT[left]);
        const held = await locks.acquire(lockName, { mode });
        expect(held.fencingToken).toBeGreaterThan(dead.rank);
        expect(await queue.entries()).toMatchObject([{ key: held.key }]);
        await held.release();
      },
    );

    test('evicts all leftovers of its predecessors, even behind other entries', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
      const { locks } = await makeProcess({ identity });
      await queue.put(LEFT.exclusive);
      const holder = await queue.put('holder');
      await queue.put(LEFT.shared);
      await queue.put(`id:${identity}:other`);
      const waiting = locks.acquire(lockName);
      expect(await queue.untilLength(2)).toMatchObject([{ key: holder.key }, {}]);
      await queue.remove(holder.key);
      await (await waiting).release();
    });

    test('names the holder, not the evicted predecessor, when it times out', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
      const { client, locks } = await makeProcess({ identity });
      await queue.put(LEFT.exclusive);
      const holder = await queue.put('holder');
      const watched = nextWait(client);
      const head = locks.acquire(lockName);
      await watched;
      const error = await rejection(locks.acquire(lockName, { timeout: 5, ttl: 6 }), EtcdLockTimeout);
      expect(error.holder).toMatchObject({ key: holder.key, value: 'holder' });
      await queue.remove(holder.key);
      await (await head).release();
    });

    test('evicts its dead predecessor with ifAvailable as well', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ identity });
      await queue.put(LEFT.exclusive);
      const held = await locks.acquire(lockName, { ifAvailable: true });
      expect(await queue.entries()).toMatchObject([{ key: held?.key }]);
      await held?.release();
    });

    test.for([`id:pod-2:x`, `id:${identity}:x:y`, identity, `id:${identity}`, `shared:id:pod-2:x`])(
      'does not evict an entry without exactly this identity: %s',
      async (value, { lockName, queue, makeProcess }) => {
        const { client, locks } = await makeProcess({ identity });
        const { key } = await queue.put(value);
        const watched = nextWait(client);
        const waiting = locks.acquire(lockName);
        expect(await watched).toBe(key);
        expect(await queue.entries()).toMatchObject([{ key, value }, {}]);
        await queue.remove(key);
        await (await waiting).release();
      },
    );

    test('is the only one to evict its leftovers: a process without an identity waits', async ({
      lockName,
      queue,
      a,
    }) => {
      const { key } = await queue.put(LEFT.exclusive);
      const watched = nextWait(a.client);
      const waiting = a.locks.acquire(lockName);
      expect(await watched).toBe(key);
      expect(await queue.entries()).toMatchObject([{ key }, {}]);
      await queue.remove(key);
      await (await waiting).release();
    });

    test('does not evict its own live entries on other clients', async ({ lockName, queue, makeProcess }) => {
      const [a, b, c] = [
        await makeProcess({ identity }),
        await makeProcess({ identity }),
        await makeProcess({ identity }),
      ];
      const held = await a.locks.acquire(lockName);
      const second = b.locks.acquire(lockName);
      const [, entry] = await queue.untilLength(2);
      const third = c.locks.acquire(lockName);
      expect(await queue.untilLength(3)).toMatchObject([{ key: held.key }, { key: entry?.key }, {}]);
      expect(await held.release()).toBe(true);
      expect((await second).key).toBe(entry?.key);
      expect(await (await second).release()).toBe(true);
      expect(await (await third).release()).toBe(true);
    });
  });

  describe('another live process with the same identity', () => {
    test('is evicted even if it has just renewed its entry', async ({ lockName, queue, makeProcess }) => {
      const { client, locks } = await makeProcess({ identity });
      const other = await queue.put(LEFT.exclusive);
      beforeNext(client, 'remove', () => queue.overwrite(other.key, LEFT.exclusive));
      const held = await locks.acquire(lockName);
      expect(await queue.entries()).toMatchObject([{ key: held.key }]);
      await held.release();
    });

    test('is not evicted if its entry has another value by then: the request waits for that entry', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
      const { client, locks } = await makeProcess({ identity });
      const { key } = await queue.put(LEFT.exclusive);
      beforeNext(client, 'remove', () => queue.overwrite(key, 'somebody else'));
      const watched = nextWait(client);
      const waiting = locks.acquire(lockName);
      expect(await watched).toBe(key);
      expect(await queue.entries()).toMatchObject([{ key, value: 'somebody else' }, {}]);
      await queue.remove(key);
      await (await waiting).release();
    });

    test('is not evicted if its entry is later: that process evicts the earlier one', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
      const { locks } = await makeProcess({ identity });
      const holder = await queue.put('holder');
      const waiting = locks.acquire(lockName);
      await queue.untilLength(2);
      const other = await queue.put(LEFT.exclusive);
      await queue.remove(holder.key);
      const held = await waiting;
      expect(await queue.entries()).toMatchObject([{ key: held.key }, { key: other.key }]);
      await held.release();
    });

    test('is notified by its signal that it was evicted, and why', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ identity });
      const held = await locks.acquire(lockName, { ttl: 6 });
      await queue.remove(held.key);
      const reason = (await aborted(held.signal)) as EtcdLockLost;
      expect(reason).toBeInstanceOf(EtcdLockLost);
      expect(reason.message).toContain(`does another process have the identity "${identity}"?`);
      expect(await held.release()).toBe(false);
    });

    test('is notified why it was evicted while it waits', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ identity });
      const holder = await queue.put('holder');
      const ended = rejection(locks.acquire(lockName), EtcdLockExpired);
      const [, own] = await queue.untilLength(2);
      await queue.remove(own?.key ?? '');
      await queue.remove(holder.key);
      expect((await ended).message).toContain(`does another process have the identity "${identity}"?`);
    });
  });
}
