import { describe, expect } from 'vitest';
import { EtcdLockLimitDiffers, EtcdLockLost } from '../../../src/errors.ts';
import type { OpenHeld } from '../../../src/manager/held.ts';
import { rejection } from '../../support/clients.ts';
import { elapsed, moment } from '../../support/stalls/stalls.mjs';
import { until } from '../../support/until.ts';
import { requestsOf } from '../stores/interventions.ts';
import { crowdTest, THREE } from './crowd.ts';
import { labelled, type ManagerTest } from './managers.ts';

const TWO = { limit: 2, ttl: 600 } as const;

export function limit(test: ManagerTest): void {
  const crowd = crowdTest(test);

  describe('a lock with a limit', () => {
    test('has entries whose value begins with the limit', async ({ lockName, queue, a, makeProcess }) => {
      const named = await makeProcess({ identity: 'pod-1' });
      const one = await a.locks.acquire(lockName, TWO);
      const other = await named.locks.acquire(lockName, TWO);
      const [first, second] = [`limit:2:${one.uuid}`, `limit:2:id:pod-1:${other.uuid}`];
      expect(await queue.values()).toEqual([labelled(first), labelled(second)]);
      for (const held of [one, other]) await held.release();
    });

    crowd('is held by that many processes together, each with its own token', async ({ queueUp, a, lockName }) => {
      const holds = await Promise.all((await queueUp(3)).map(({ holding }) => holding));
      for (const held of holds) held.assertHeld();
      const tokens = holds.map(({ fencingToken }) => fencingToken);
      expect(tokens.toSorted((x, y) => (x < y ? -1 : 1))).toEqual(tokens);
      expect(new Set(tokens).size).toBe(3);
      expect(await a.locks.acquire(lockName, { ...THREE, ifAvailable: true })).toBeNull();
      for (const held of holds) expect(await held.release()).toBe(true);
    });

    test('goes to at most as many requests as its limit, if they must not wait', async ({ lockName, a }) => {
      const options = { ...THREE, ifAvailable: true } as const;
      const holds = await Promise.all(Array.from({ length: 4 }, () => a.locks.acquire(lockName, options)));
      expect(holds.map((held) => held !== null)).toEqual([true, true, true, false]);
      for (const held of holds) await held?.release();
    });

    for (const which of [0, 1, 2])
      crowd(`goes to the first waiter when holder ${which + 1} of 3 releases it`, async ({ queueUp, queue }) => {
        const [holders, waiters] = [await queueUp(3), await queueUp(2)];
        const holds = await Promise.all(holders.map(({ holding }) => holding));
        await holds[which]?.release();
        const next = await waiters[0]?.holding;
        expect(await queue.entries()).toHaveLength(4);
        expect(await settled(waiters[1]?.holding)).toBe(false);
        await next?.release();
        await (await waiters[1]?.holding)?.release();
        for (const held of holds) await held.release();
      });

    crowd('goes to all waiters in their order, whichever holders release it', async ({ queueUp, queue }) => {
      const all = await queueUp(8);
      const holds: OpenHeld[] = [];
      const order: number[] = [];
      for (const [index, { holding }] of all.entries())
        void holding.then((held) => {
          holds.push(held);
          order.push(index);
        });
      // The order of the releases is arbitrary, but the same in each run.
      for (const which of [1, 2, 0, 2, 0, 1, 1, 0]) {
        const left = all.length - order.length;
        await until(
          () => holds.length,
          (length) => length === Math.min(3, holds.length + left),
        );
        const [held] = holds.splice(Math.min(which, holds.length - 1), 1);
        await held?.release();
      }
      expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect(await queue.entries()).toEqual([]);
    });

    crowd('goes to several waiters when several holders release it at once', async ({ queueUp, queue }) => {
      const [holders, waiters] = [await queueUp(3), await queueUp(4)];
      const from = moment();
      await Promise.all(holders.map(async ({ holding }) => (await holding).release()));
      const next = await Promise.all(waiters.slice(0, 3).map(({ holding }) => holding));
      // A waiter that missed a release would read the queue only after 18 seconds.
      expect(elapsed(from)).toBeLessThan(10_000);
      expect(await settled(waiters[3]?.holding)).toBe(false);
      await next[1]?.release();
      await (await waiters[3]?.holding)?.release();
      for (const held of next) await held.release();
      expect(await queue.entries()).toEqual([]);
    });

    crowd('is freed when the entry of a holder is removed', async ({ queueUp, queue }) => {
      // With both APIs, the lock is free once the holder has noticed the loss.
      const [holders, [waiter]] = [await queueUp(3, { ...THREE, ttl: 3 }), await queueUp(1)];
      const [, held] = await Promise.all(holders.map(({ holding }) => holding));
      await queue.remove(held?.key ?? '');
      const next = await waiter?.holding;
      next?.assertHeld();
      await next?.release();
      for (const { holding } of holders) await (await holding).release();
    });

    crowd('is not held up by a waiter that gives up', async ({ queueUp, queue, makeProcess, lockName }) => {
      const holders = await queueUp(3);
      const abort = new AbortController();
      const first = await makeProcess();
      const gaveUp = expect(first.locks.acquire(lockName, { ...THREE, signal: abort.signal })).rejects.toBe('reason');
      await queue.untilLength(4);
      const [second, third] = await queueUp(2);
      abort.abort('reason');
      await gaveUp;
      const holds = await Promise.all(holders.map(({ holding }) => holding));
      for (const held of holds.slice(0, 2)) await held.release();
      for (const next of [second, third]) await (await next?.holding)?.release();
      await holds[2]?.release();
    });
  });

  describe('a lock with a limit, and requests without one:', () => {
    test('an entry of another client that is first holds the lock alone', async ({ lockName, queue, a }) => {
      const other = await queue.put('of another client');
      const waiting = a.locks.acquire(lockName, TWO);
      await queue.untilLength(2);
      expect(await settled(waiting)).toBe(false);
      await queue.remove(other.key);
      await (await waiting).release();
    });

    for (const mode of ['exclusive', 'shared'] as const)
      test(`${mode} requests wait for all holders, and later requests with a limit wait for them`, async ({
        lockName,
        queue,
        a,
        b,
        makeProcess,
      }) => {
        const [c, d] = [await makeProcess(), await makeProcess()];
        const order: string[] = [];
        const holds = [await a.locks.acquire(lockName, THREE), await b.locks.acquire(lockName, THREE)];
        const other = c.locks.request(lockName, { mode }, async ({ fencingToken }) => {
          order.push(mode);
          expect(await queue.entries()).toHaveLength(2);
          return fencingToken;
        });
        await queue.untilLength(3);
        const late = d.locks.request(lockName, THREE, async () => {
          order.push('late');
        });
        await queue.untilLength(4);
        await holds[1]?.release();
        await queue.untilLength(3);
        expect(order).toEqual([]);
        await holds[0]?.release();
        await Promise.all([other, late]);
        expect(order).toEqual([mode, 'late']);
      });

    crowd(
      'as many as the limit says acquire it together behind an exclusive holder',
      async ({ queueUp, a, lockName }) => {
        const held = await a.locks.acquire(lockName);
        const waiters = await queueUp(5);
        await held.release();
        const holds = await Promise.all(waiters.slice(0, 3).map(({ holding }) => holding));
        expect(await settled(waiters[3]?.holding)).toBe(false);
        for (const hold of holds) await hold.release();
        for (const { holding } of waiters.slice(3)) await (await holding).release();
      },
    );
  });

  describe('requests with another limit', () => {
    crowd('are refused with an error that names the entry and both limits', async ({ queueUp, queue, a, lockName }) => {
      const [{ holding } = expect.unreachable()] = await queueUp(1);
      const held = await holding;
      for (const ifAvailable of [false, true]) {
        const error = await rejection(a.locks.acquire(lockName, { limit: 5, ifAvailable }), EtcdLockLimitDiffers);
        expect(error.message).toContain('limit must be 3, as for this process');
        expect(error.message).toMatch(
          /, got 5; to change the limit, end all requests with 3, or ask again after their end$/,
        );
        expect(error.message).not.toContain('never expires');
        expect(error.holder).toMatchObject({ uuid: held.uuid, limit: 3, mode: 'exclusive' });
      }
      expect(await queue.entries()).toHaveLength(1);
      held.assertHeld();
      await held.release();
      await (await a.locks.acquire(lockName, { limit: 5 })).release();
    });
  });

  describe('a limit that changes while it is in use', () => {
    crowd(
      'stays until its last request ends, and then the old one is refused',
      async ({ queueUp, queue, a, b, lockName }) => {
        const waiters = await queueUp(4);
        const holds = await Promise.all(waiters.slice(0, 3).map(({ holding }) => holding));
        const changed = until(
          () => a.locks.acquire(lockName, { limit: 5 }).catch((error: unknown) => error),
          (outcome) => !(outcome instanceof EtcdLockLimitDiffers),
        );
        for (const hold of holds) await hold.release();
        const last = await waiters[3]?.holding;
        last?.assertHeld();
        expect(await settled(changed)).toBe(false);
        await last?.release();
        const held = (await changed) as OpenHeld;
        expect(await queue.entries()).toHaveLength(1);
        await rejection(b.locks.acquire(lockName, { limit: 3 }), EtcdLockLimitDiffers);
        await held.release();
      },
    );
  });

  test.for([0, -1, 1.5, 1001, Number.NaN, '3', null])(
    'the limit %j is refused before anything is sent',
    async (bad, { lockName, a }) => {
      const sent = requestsOf(a.client);
      const error = await rejection(a.locks.acquire(lockName, { limit: bad as number }), RangeError);
      expect(error.message).toBe(
        `limit must be an integer from 1 to 1000, got ${typeof bad === 'string' ? '"3"' : bad}`,
      );
      expect(sent()).toEqual([]);
    },
  );

  test('a limit is refused together with mode: shared', async ({ lockName, a }) => {
    const request = a.locks.acquire(lockName, { limit: 3, mode: 'shared' });
    expect((await rejection(request, RangeError)).message).toBe("limit must not be set with mode 'shared', got 3");
  });

  test('a limit of 1 is a lock of its own kind: one holder at a time', async ({ lockName, queue, a, b }) => {
    const held = await a.locks.acquire(lockName, { limit: 1 });
    const next = b.locks.acquire(lockName, { limit: 1 });
    await queue.untilLength(2);
    expect(await settled(next)).toBe(false);
    await held.release();
    await (await next).release();
  });

  crowd('query shows the holders and waiters with their limit', async ({ queueUp, a, lockName }) => {
    const waiters = await queueUp(5);
    await Promise.all(waiters.slice(0, 3).map(({ holding }) => holding));
    const { held, pending } = await a.locks.query(lockName);
    expect([held.length, pending.length]).toEqual([3, 2]);
    for (const info of [...held, ...pending]) expect(info).toMatchObject({ limit: 3, mode: 'exclusive' });
    for (const { holding } of waiters) await (await holding).release();
  });

  crowd('release with force removes all holders, and no waiter', async ({ queueUp, a, lockName }) => {
    const waiters = await queueUp(4);
    const holds = await Promise.all(waiters.slice(0, 3).map(({ holding }) => holding));
    const removed = await a.locks.release(lockName, { force: true });
    // With the stores of both APIs, requests that hold the lock on v2 together enter the queue on v3 in any order.
    const keysOf = (infos: readonly { readonly key: string }[]) => infos.map(({ key }) => key).toSorted();
    expect(keysOf(removed)).toEqual(keysOf(holds));
    await (await waiters[3]?.holding)?.release();
    for (const held of holds) await held.release();
  });

  test('requests of one process with a limit need that many entries', async ({ lockName, queue, a }) => {
    let [now, most] = [0, 0];
    const done: number[] = [];
    const work = (index: number) => async () => {
      now += 1;
      most = Math.max(most, now);
      // The first three run together.
      await until(
        () => most,
        (count) => count === 3,
      );
      expect((await queue.entries()).length).toBeLessThanOrEqual(3);
      now -= 1;
      done.push(index);
    };
    await Promise.all(Array.from({ length: 9 }, (_, index) => a.locks.request(lockName, THREE, work(index))));
    expect(done.toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(most).toBe(3);
    expect(await queue.entries()).toEqual([]);
  });

  describe('a reentrant request inside a hold with a limit', () => {
    test('runs under that hold if it has the same limit', async ({ lockName, queue, a }) => {
      await a.locks.request(lockName, TWO, async ({ uuid }) => {
        await a.locks.request(lockName, { ...TWO, reentrant: true }, async (inner) => {
          expect(inner.uuid).toBe(uuid);
          expect(await queue.entries()).toHaveLength(1);
        });
      });
    });

    test.for([
      [{ limit: 3 }, 'got 3'],
      [{}, 'got undefined'],
      [{ mode: 'shared' as const }, 'got mode "shared"'],
    ] as const)('is refused with %j', async ([other, got], { lockName, a }) => {
      await a.locks.request(lockName, TWO, async () => {
        const inner = a.locks.request(lockName, { ...other, reentrant: true }, () => {});
        const error = await rejection(inner, RangeError);
        expect(error.message).toContain(`limit must be 2 inside a hold of "${lockName}" with that limit, ${got}`);
      });
    });
  });

  crowd('a holder whose entry is removed learns of the loss, and the others hold on', async ({ queueUp, queue }) => {
    const holders = await queueUp(2, { ...THREE, ttl: 6 });
    const [one, other] = await Promise.all(holders.map(({ holding }) => holding));
    await queue.remove(one?.key ?? '');
    await until(
      () => one?.signal.aborted,
      (aborted) => aborted === true,
    );
    expect(one?.signal.reason).toBeInstanceOf(EtcdLockLost);
    other?.assertHeld();
    expect(await one?.release()).toBe(false);
    expect(await other?.release()).toBe(true);
  });
}

/** Whether the promise has settled by now. */
const settled = (promise: Promise<unknown> | undefined): Promise<boolean> =>
  Promise.race([
    promise?.then(
      () => true,
      () => true,
    ) ?? Promise.resolve(true),
    new Promise<boolean>((resolve) => setImmediate(() => resolve(false))),
  ]);
