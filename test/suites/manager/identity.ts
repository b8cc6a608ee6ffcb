import { describe, expect } from 'vitest';
import { EtcdLockExpired, EtcdLockLost, EtcdWatchTimedOut } from '../../../src/errors.ts';
import type { LockMode } from '../../../src/recipe/entry-value.ts';
import { rejection } from '../../support/clients.ts';
import { aborted } from '../lock/locks.ts';
import { beforeNext, nextWait } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

const identity = 'pod-1';
/** As a process of that identity left it that is gone. */
const LEFT = { exclusive: `id:${identity}:0badc0de`, shared: `shared:id:${identity}:0badc0de` } as const;
const MODES: readonly LockMode[] = ['exclusive', 'shared'];

export function identities(test: ManagerTest): void {
  describe('a process with an identity', () => {
    test('puts it into its entries, with a uuid of its own each time', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ identity });
      const uuids: string[] = [];
      for (const _ of [1, 2])
        await locks.request(lockName, async (held) => {
          uuids.push(held.uuid);
          expect(await queue.values()).toEqual([`id:${identity}:${held.uuid}`]);
        });
      expect(new Set(uuids).size).toBe(2);
    });

    test('may have another one for one request', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ identity });
      await locks.request(lockName, { identity: 'a:b' }, async ({ uuid }) => {
        expect(await queue.values()).toEqual([`id:a:b:${uuid}`]);
      });
    });

    test.for(MODES.flatMap((left) => MODES.map((mode) => [left, mode] as const)))(
      'removes what its dead predecessor held (%s) instead of waiting for it (%s)',
      async ([left, mode], { lockName, queue, makeProcess }) => {
        const { locks } = await makeProcess({ identity });
        const dead = await queue.put(LEFT[left]);
        const held = await locks.acquire(lockName, { mode });
        expect(held.fencingToken).toBeGreaterThan(dead.rank);
        expect(await queue.entries()).toMatchObject([{ key: held.key }]);
        await held.release();
      },
    );

    test('removes all that its predecessors left, also behind others', async ({ lockName, queue, makeProcess }) => {
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

    test('names the holder, not the predecessor it has removed', async ({ lockName, queue, makeProcess }) => {
      const { client, locks } = await makeProcess({ identity });
      await queue.put(LEFT.exclusive);
      const holder = await queue.put('holder');
      const watched = nextWait(client);
      const head = locks.acquire(lockName);
      await watched;
      const error = await rejection(locks.acquire(lockName, { timeout: 0.1 }), EtcdWatchTimedOut);
      expect(error.holder).toMatchObject({ key: holder.key, value: 'holder' });
      await queue.remove(holder.key);
      await (await head).release();
    });

    test('passes over its dead predecessor with ifAvailable, too', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ identity });
      await queue.put(LEFT.exclusive);
      const held = await locks.acquire(lockName, { ifAvailable: true });
      expect(await queue.entries()).toMatchObject([{ key: held?.key }]);
      await held?.release();
    });

    test.for([`id:pod-2:x`, `id:${identity}:x:y`, identity, `id:${identity}`, `shared:id:pod-2:x`])(
      'leaves alone what is not of that identity: %s',
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

    test('leaves alone what a process without one left', async ({ lockName, queue, a }) => {
      const { key } = await queue.put(LEFT.exclusive);
      const watched = nextWait(a.client);
      const waiting = a.locks.acquire(lockName);
      expect(await watched).toBe(key);
      expect(await queue.entries()).toMatchObject([{ key }, {}]);
      await queue.remove(key);
      await (await waiting).release();
    });

    test('does not take what it holds or waits with by another client for left over', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
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

  describe('a twin that lives', () => {
    test('is fenced off though it renewed its entry in the last moment', async ({ lockName, queue, makeProcess }) => {
      const { client, locks } = await makeProcess({ identity });
      const twin = await queue.put(LEFT.exclusive);
      beforeNext(client, 'remove', () => queue.overwrite(twin.key, LEFT.exclusive));
      const held = await locks.acquire(lockName);
      expect(await queue.entries()).toMatchObject([{ key: held.key }]);
      await held.release();
    });

    test('whose entry became another’s meanwhile is not: that stands in the way', async ({
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

    test('is left alone where it came later: it is that one’s turn to fence off', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
      const { locks } = await makeProcess({ identity });
      const holder = await queue.put('holder');
      const waiting = locks.acquire(lockName);
      await queue.untilLength(2);
      const twin = await queue.put(LEFT.exclusive);
      await queue.remove(holder.key);
      const held = await waiting;
      expect(await queue.entries()).toMatchObject([{ key: held.key }, { key: twin.key }]);
      await held.release();
    });

    test('learns by its signal that it was fenced off, and why', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ identity });
      const held = await locks.acquire(lockName, { ttl: 3 });
      await queue.remove(held.key);
      const reason = (await aborted(held.signal)) as EtcdLockLost;
      expect(reason).toBeInstanceOf(EtcdLockLost);
      expect(reason.message).toContain(`does another process have the identity "${identity}"?`);
      expect(await held.release()).toBe(false);
    });

    test('learns why also while it waits', async ({ lockName, queue, makeProcess }) => {
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
