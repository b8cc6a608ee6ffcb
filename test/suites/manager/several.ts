import { describe, expect } from 'vitest';
import { EtcdClientClosed, EtcdLockLost, EtcdLockReleased, EtcdLockTimeout } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { rejection } from '../../support/clients.ts';
import { gate } from '../../support/gate.ts';
import { until } from '../../support/until.ts';
import { aborted } from '../lock/locks.ts';
import { beforeNext, requestsOf } from '../stores/interventions.ts';
import type { QueueView, StoreClient } from '../stores/store-client.ts';
import type { ManagerTest } from './managers.ts';

/** Two locks of this test, and the views of their queues. */
function twoLocks(client: StoreClient, lockName: string): { first: string; second: string; views: QueueView[] } {
  const [first, second] = [`${lockName}-1`, `${lockName}-2`];
  return { first, second, views: [client.view(first), client.view(second)] };
}

const lengths = (views: readonly QueueView[]): Promise<number[]> =>
  Promise.all(views.map(async (view) => (await view.entries()).length));

export function several(test: ManagerTest): void {
  describe.concurrent('several locks', () => {
    test('are all held in the callback, each with a fencing token, and released after it', async ({ lockName, a }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const before = await Promise.all(
        [first, second].map((name) => a.locks.request(name, (held) => held.fencingToken)),
      );
      const result = await a.locks.request([second, first], async (held) => {
        held.assertHeld();
        expect(held.all.map(({ name }) => name)).toEqual([second, first]);
        expect(held.get(first)).toBe(held.all[1]);
        for (const [index, name] of [first, second].entries())
          expect(held.get(name).fencingToken).toBeGreaterThan(before[index] ?? 0n);
        const expireIn = () => Math.min(...held.all.map((one) => one.expiresIn()));
        const [earlier, together, later] = [expireIn(), held.expiresIn(), expireIn()];
        expect(together).toBeLessThanOrEqual(earlier);
        expect(together).toBeGreaterThanOrEqual(later);
        expect(JSON.parse(JSON.stringify(held))).toMatchObject([{ name: second }, { name: first }]);
        expect(() => held.get('another')).toThrow(
          `the request does not include the lock "another", only "${second}", "${first}"`,
        );
        expect(await lengths(views)).toEqual([1, 1]);
        return 'result';
      });
      expect(result).toBe('result');
      expect(await lengths(views)).toEqual([0, 0]);
    });

    test('do not deadlock when others name them in another order', async ({ lockName, makeProcess }) => {
      const names = ['1', '2', '3'].map((end) => `${lockName}-${end}`);
      const orders = [names, names.toReversed(), [names[1], names[0], names[2]]] as string[][];
      const processes = await Promise.all(orders.map(() => makeProcess()));
      let [inside, most] = [0, 0];
      const runs = processes.flatMap(({ locks }, index) =>
        [1, 2, 3].map(() =>
          locks.request(orders[index] ?? [], async () => {
            most = Math.max(most, ++inside);
            await new Promise(setImmediate);
            inside -= 1;
          }),
        ),
      );
      await Promise.all(runs);
      expect(most).toBe(1);
    });

    test('wait for the holder of one of them, and keep the others during the wait', async ({ lockName, a, b }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const holder = await b.locks.acquire(second);
      const waiting = a.locks.request([second, first], (held) => held.all.length);
      await until(
        () => lengths(views),
        (found) => found.join() === '1,2',
      );
      expect(await b.locks.acquire(first, { ifAvailable: true })).toBeNull();
      await holder.release();
      expect(await waiting).toBe(2);
    });

    test('with ifAvailable are none if one is taken, and nothing is left behind', async ({ lockName, a, b }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const holder = await b.locks.acquire(second);
      const options = { ifAvailable: true, holdAtLeast: 600 };
      expect(await a.locks.request([first, second], options, (held) => held)).toBeNull();
      expect(await a.locks.acquire([first, second], options)).toBeNull();
      expect(await lengths(views)).toEqual([0, 1]);
      await holder.release();
      await using held = await a.locks.acquire([first, second], { ifAvailable: true });
      expect(held?.all).toHaveLength(2);
    });

    test('have one timeout, after which nothing is left behind', async ({ lockName, a, b }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const holder = await b.locks.acquire(second);
      const error = await rejection(a.locks.acquire([first, second], { timeout: 5, ttl: 600 }), EtcdLockTimeout);
      expect(error.message).toContain(second);
      expect(error.holder?.uuid).toBe(holder.uuid);
      // On a busy machine, the call does not wait for the end of the removals.
      await until(
        () => lengths(views),
        (found) => found.join() === '0,1',
      );
      await holder.release();
    });

    test('are given up with the reason of the signal', async ({ lockName, a, b }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const holder = await b.locks.acquire(second);
      const controller = new AbortController();
      const waiting = a.locks.acquire([first, second], { signal: controller.signal });
      const rejected = expect(waiting).rejects.toThrow('no longer wanted');
      await until(
        () => lengths(views),
        (found) => found.join() === '1,2',
      );
      controller.abort(new Error('no longer wanted'));
      await rejected;
      expect(await lengths(views)).toEqual([0, 1]);
      await holder.release();
    });

    test('abort one signal when one of them is lost', async ({ lockName, a }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const running = a.locks.request([first, second], { ttl: 6 }, async (held) => {
        await views[1]?.remove(held.get(second).key);
        await aborted(held.signal);
        expect(held.signal.reason).toBe(held.get(second).signal.reason);
        expect(() => held.assertHeld()).toThrow(EtcdLockLost);
        expect(held.expiresIn()).toBe(0);
        held.get(first).assertHeld();
      });
      await expect(running).rejects.toThrow(EtcdLockLost);
      expect(await lengths(views)).toEqual([0, 0]);
    });

    test('attach the loss of one of them to the error of the callback', async ({ lockName, a }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const mine = new Error('of the callback');
      const running = a.locks.request([first, second], { ttl: 6 }, async (held) => {
        await views[0]?.remove(held.get(first).key);
        await aborted(held.signal);
        throw mine;
      });
      await expect(running).rejects.toBe(mine);
      expect(mine).toMatchObject({ lockError: expect.any(EtcdLockLost) });
    });

    test('that are lost while the request waits for another are acquired again', async ({ lockName, a, b }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const holder = await b.locks.acquire(second);
      const waiting = a.locks.acquire([first, second], { ttl: 6 });
      await until(
        () => lengths(views),
        (found) => found.join() === '1,2',
      );
      const [entry] = (await views[0]?.entries()) ?? [];
      await views[0]?.remove(entry?.key ?? '');
      const [again] = await until(
        async () => (await views[0]?.entries()) ?? [],
        ([found]) => found !== undefined && found.key !== entry?.key,
      );
      await holder.release();
      const held = await waiting;
      expect(held.get(first).key).toBe(again?.key);
      expect(await held.release()).toBe(true);
    });

    test('that are lost while waiting with an identity end the request', async ({ lockName, a, b }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const holder = await b.locks.acquire(second);
      const waiting = a.locks.acquire([first, second], { ttl: 6, identity: 'pod-1' });
      const rejected = expect(waiting).rejects.toThrow(EtcdLockLost);
      await until(
        () => lengths(views),
        (found) => found.join() === '1,2',
      );
      const [entry] = (await views[0]?.entries()) ?? [];
      await views[0]?.remove(entry?.key ?? '');
      await rejected;
      expect(await lengths(views)).toEqual([0, 1]);
      await holder.release();
    });

    test('keep their entries with holdAtLeast, and are lost after maxHold, from when all are held', async ({
      lockName,
      a,
      b,
    }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const holder = await b.locks.acquire(second);
      const callback = gate();
      const running = a.locks.request([first, second], { maxHold: 1, holdAtLeast: 1 }, async (held) => {
        for (const one of held.all) one.assertHeld();
        callback.open();
        await aborted(held.signal);
      });
      const rejected = expect(running).rejects.toThrow('maxHold of 1 s');
      await until(
        () => lengths(views),
        (found) => found.join() === '1,2',
      );
      // Longer than `maxHold` of the first lock.
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      await holder.release();
      await callback.opened;
      await rejected;
      await a.locks.request([first, second], { holdAtLeast: 600 }, () => {});
      for (const view of views) {
        const [kept, ...others] = await view.entries();
        expect(others).toEqual([]);
        expect(kept?.ttl).toBeGreaterThan(30);
        await view.remove(kept?.key ?? '');
      }
    });

    test('let reentrant requests for one of them join', async ({ lockName, a }) => {
      const { first, second } = twoLocks(a.client, lockName);
      await a.locks.request([first, second], async (held) => {
        for (const name of [first, second])
          await a.locks.request(name, { reentrant: true }, (inner) => expect(inner).toBe(held.get(name)));
      });
    });

    test('are released together, once the reentrant requests inside have ended', async ({ lockName, a, b }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const [isHeld, isAskedFor] = [gate(), gate()];
      let inside: Promise<void> | undefined;
      const outer = a.locks.request([first, second], () => {
        isHeld.open();
        inside = a.locks.request(second, { reentrant: true }, async () => {
          await isAskedFor.opened;
          await a.locks.request(first, { reentrant: true }, () => {});
        });
      });
      await isHeld.opened;
      const next = b.locks.request([first, second], () => 'the next');
      await until(
        () => lengths(views),
        (found) => found.join() === '2,1',
      );
      isAskedFor.open();
      await inside;
      await outer;
      expect(await next).toBe('the next');
    });

    test('reject with the first loss if several of them are lost', async ({ lockName, a }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      let reason: unknown;
      const running = a.locks.request([second, first], { ttl: 6 }, async (held) => {
        await views[0]?.remove(held.get(first).key);
        await aborted(held.signal);
        ({ reason } = held.signal);
        await views[1]?.remove(held.get(second).key);
        await aborted(held.get(second).signal);
        expect(() => held.assertHeld()).toThrow(reason as Error);
      });
      expect(await rejection(running, EtcdLockLost)).toBe(reason);
    });

    test('report a loss also after the release', async ({ lockName, a }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const held = await a.locks.acquire([first, second], { ttl: 6 });
      await views[1]?.remove(held.get(second).key);
      await aborted(held.signal);
      expect(await held.release()).toBe(false);
      expect(() => held.assertHeld()).toThrow(EtcdLockLost);
    });

    test('reject with the reason of the signal if it aborts while a lost lock is given up', async ({
      lockName,
      a,
      b,
    }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const holder = await b.locks.acquire(second);
      const controller = new AbortController();
      const waiting = a.locks.acquire([first, second], { ttl: 6, signal: controller.signal, identity: 'pod-1' });
      const rejected = expect(waiting).rejects.toThrow('no longer wanted');
      await until(
        () => lengths(views),
        (found) => found.join() === '1,2',
      );
      beforeNext(a.client, 'remove', async () => controller.abort(new Error('no longer wanted')));
      const [entry] = (await views[0]?.entries()) ?? [];
      await views[0]?.remove(entry?.key ?? '');
      await rejected;
      await holder.release();
    });

    test('are acquired in the byte order of their names', async ({ lockName, a, b }) => {
      // By UTF-16 code units, the second comes first.
      const [first, second] = [`${lockName}-\uff5e`, `${lockName}-\u{1f600}`];
      const views = [first, second].map((name) => a.client.view(name));
      const holder = await b.locks.acquire(first);
      const waiting = a.locks.acquire([second, first]);
      await until(
        () => lengths(views),
        ([length]) => length === 2,
      );
      expect(await lengths(views)).toEqual([2, 0]);
      await holder.release();
      await (await waiting).release();
    });

    test('can be shared', async ({ lockName, a, b }) => {
      const { first, second } = twoLocks(a.client, lockName);
      const options = { mode: 'shared', ifAvailable: true } as const;
      const both = await Promise.all([a, b].map(({ locks }) => locks.acquire([first, second], options)));
      for (const held of both) expect(await held?.release()).toBe(true);
    });

    test('are released once, and then no longer held', async ({ lockName, a }) => {
      const { first, second, views } = twoLocks(a.client, lockName);
      const held = await a.locks.acquire([first, second]);
      expect(await Promise.all([held.release(), held.release()])).toEqual([true, true]);
      expect(() => held.assertHeld()).toThrow(EtcdLockReleased);
      expect(held.signal.aborted).toBe(false);
      expect(await lengths(views)).toEqual([0, 0]);
    });

    test('are given up when the client is closed', async ({ lockName, b, openUnclosed }) => {
      const client = await openUnclosed();
      const { first, second, views } = twoLocks(b.client, lockName);
      const holder = await b.locks.acquire(second);
      const waiting = new LockManager(client).acquire([first, second]);
      const rejected = expect(waiting).rejects.toThrow(EtcdClientClosed);
      await until(
        () => lengths(views),
        (found) => found.join() === '1,2',
      );
      await client.close();
      await rejected;
      expect(await lengths(views)).toEqual([0, 1]);
      await holder.release();
    });

    test('cost as many requests as each alone', async ({ lockName, a }) => {
      const names = ['1', '2', '3'].map((end) => `${lockName}-${end}`);
      await a.locks.request(names, () => {});
      const calls = requestsOf(a.client);
      await a.locks.request(`${lockName}-4`, () => {});
      const alone = calls().length;
      await a.locks.request(names, () => {});
      expect(calls().length - alone).toBe(3 * alone);
    });

    test('refuse invalid names and options before any call', async ({ lockName, a }) => {
      const calls = requestsOf(a.client);
      const { locks } = a;
      await expect(locks.request([], () => {})).rejects.toThrow('the list of lock names must not be empty');
      await expect(locks.acquire([])).rejects.toThrow(RangeError);
      await expect(locks.request([lockName, 'a', lockName], () => {})).rejects.toThrow(
        `lock names must differ, got "${lockName}" and "${lockName}"`,
      );
      await expect(locks.request([lockName, ''], () => {})).rejects.toThrow(RangeError);
      await expect(locks.request([lockName, 1 as never], () => {})).rejects.toThrow('got 1');
      await expect(locks.request([lockName], undefined as never)).rejects.toThrow('callback must be a function');
      const reentrant = { reentrant: true } as never;
      await expect(locks.request([lockName], reentrant, () => {})).rejects.toThrow(
        'reentrant must not be true in a request for several locks',
      );
      await expect(locks.acquire([lockName], { signal: AbortSignal.abort(new Error('early')) })).rejects.toThrow(
        'early',
      );
      expect(calls()).toEqual([]);
    });
  });
}
