import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { EtcdLockLost, EtcdLockTimeout } from '../../../src/errors.ts';
import type { Held } from '../../../src/manager/held.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { rejection } from '../../support/clients.ts';
import { gate } from '../../support/gate.ts';
import { aborted } from '../lock/locks.ts';
import { nextWait, requestsOf } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

const reentrant = true;
const unreachable = () => expect.unreachable();

export function reentrance(test: ManagerTest): void {
  describe('the option reentrant', () => {
    test('runs a request inside a hold of the lock under that hold, without a call', async ({ lockName, a }) => {
      await a.locks.request(lockName, async (outer) => {
        const calls = requestsOf(a.client);
        const run = (held: Held) => held;
        expect(await a.locks.request(lockName, { reentrant }, run)).toBe(outer);
        expect(await new LockManager(a.client).request(lockName, { reentrant, mode: 'shared' }, run)).toBe(outer);
        expect(await a.locks.request(lockName, { reentrant, ifAvailable: true }, (held) => held)).toBe(outer);
        expect(calls()).toEqual([]);
      });
    });

    test('finds the enclosing hold at any depth, even with other locks in between', async ({ lockName, a }) => {
      const other = `${lockName}-other`;
      await a.locks.request(lockName, (outer) =>
        a.locks.request(other, (between) =>
          a.locks.request(lockName, { reentrant }, async (inner) => {
            expect(inner).toBe(outer);
            expect(await a.locks.request(other, { reentrant }, (held) => held)).toBe(between);
          }),
        ),
      );
    });

    test('lets a request end with the result or the error of its own callback', async ({ lockName, a }) => {
      const own = new Error('own');
      const result = await a.locks.request(lockName, async (held) => {
        const failing = a.locks.request(lockName, { reentrant }, () => Promise.reject(own));
        await expect(failing).rejects.toBe(own);
        held.assertHeld();
        return a.locks.request(lockName, { reentrant }, () => 'result');
      });
      expect(result).toBe('result');
      expect(own).not.toHaveProperty('lockError');
    });

    test('lets a request outside any hold wait like others, and get its own hold', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName);
      const waiting = a.locks.request(lockName, { reentrant }, async (outer) => {
        expect(outer.key).not.toBe(held.key);
        expect(await a.locks.request(lockName, { reentrant }, (inner) => inner)).toBe(outer);
      });
      await rejection(a.locks.request(lockName, { reentrant, timeout: 0.1 }, unreachable), EtcdLockTimeout);
      await held.release();
      await waiting;
      expect(await queue.entries()).toEqual([]);
    });

    test('does not find a hold of another client or of another lock', async ({ lockName, a, b }) => {
      await a.locks.request(lockName, async (held) => {
        const abort = new AbortController();
        const watched = nextWait(b.client);
        const ended = expect(b.locks.request(lockName, { reentrant, signal: abort.signal }, unreachable)).rejects.toBe(
          'reason',
        );
        expect(await watched).toBe(held.key);
        abort.abort('reason');
        await ended;
        await a.locks.request(`${lockName}-other`, { reentrant }, (other) => expect(other.key).not.toBe(held.key));
      });
    });

    test('does not find a hold that is over: the request queues again', async ({ lockName, a }) => {
      const done = gate();
      let late: Promise<Held> | undefined;
      const outer = await a.locks.request(lockName, (held) => {
        late = done.opened.then(() => a.locks.request(lockName, { reentrant }, (mine) => mine));
        return held;
      });
      done.open();
      expect((await late)?.fencingToken).toBeGreaterThan(outer.fencingToken);
    });

    test('is necessary: without it, a request waits for the hold that encloses it', async ({ lockName, a }) => {
      await a.locks.request(lockName, async (held) => {
        const error = await rejection(a.locks.request(lockName, { timeout: 0.1 }, unreachable), EtcdLockTimeout);
        expect(error.holder?.key).toBe(held.key);
      });
    });

    test('refuses an exclusive request inside a shared hold, which stays valid', async ({ lockName, a }) => {
      await a.locks.request(lockName, { mode: 'shared' }, async (outer) => {
        const error = await rejection(a.locks.request(lockName, { reentrant }, unreachable), RangeError);
        expect(error.message).toBe(`mode must be 'shared' inside a shared hold of "${lockName}", got "exclusive"`);
        expect(await a.locks.request(lockName, { reentrant, mode: 'shared' }, (held) => held)).toBe(outer);
        outer.assertHeld();
      });
    });

    test('allows an exclusive request inside a shared request inside an exclusive hold', async ({ lockName, a }) => {
      await a.locks.request(lockName, (outer) =>
        a.locks.request(lockName, { reentrant, mode: 'shared' }, () =>
          a.locks.request(lockName, { reentrant }, (held) => expect(held).toBe(outer)),
        ),
      );
    });
  });

  describe('the hold around reentrant requests', () => {
    test('lasts until the requests that were not awaited have ended', async ({ lockName, queue, a }) => {
      const steps: string[] = [];
      const [first, second] = [gate(), gate()];
      const nested: Promise<void>[] = [];
      const outer = a.locks
        .request(lockName, () => {
          nested.push(
            a.locks.request(lockName, { reentrant }, async (held) => {
              await first.opened;
              // Starts after the outer callback has ended.
              nested.push(
                a.locks.request(lockName, { reentrant }, async (inner) => {
                  expect(inner).toBe(held);
                  await second.opened;
                  inner.assertHeld();
                  steps.push('second');
                }),
              );
              steps.push('first');
            }),
          );
          steps.push('callback');
        })
        .then(() => steps.push('outer'));
      await queue.untilLength(1);
      first.open();
      await nested[0];
      expect(await queue.entries()).toHaveLength(1);
      second.open();
      await Promise.all([outer, ...nested]);
      expect(steps).toEqual(['callback', 'first', 'second', 'outer']);
      expect(await queue.entries()).toEqual([]);
    });

    test('does not end while a request begins that joins at the last moment', async ({ lockName, a }) => {
      /** Calls `fn` after this number of microtasks. */
      const inMicrotasks = (count: number, fn: () => void): void =>
        count === 0 ? fn() : queueMicrotask(() => inMicrotasks(count - 1, fn));
      for (let microtasks = 0; microtasks < 15; microtasks += 1) {
        const joined: Promise<void>[] = [];
        const join = (held: Held) => sleep(20).then(() => held.assertHeld());
        const inner = async () => {
          await sleep(5);
          inMicrotasks(microtasks, () => joined.push(a.locks.request(lockName, { reentrant }, join)));
        };
        await a.locks.request(lockName, () => void a.locks.request(lockName, { reentrant }, inner));
        await Promise.all(joined);
        expect(joined).toHaveLength(1);
      }
    });

    test('ends without an error if a request that was not awaited fails', async ({ lockName, queue, a }) => {
      const own = new Error('own');
      let nested: Promise<unknown> | undefined;
      const result = await a.locks.request(lockName, () => {
        nested = rejection(
          a.locks.request(lockName, { reentrant }, () => Promise.reject(own)),
          Error,
        );
        return 'result';
      });
      expect(result).toBe('result');
      expect(await nested).toBe(own);
      expect(await queue.entries()).toEqual([]);
    });

    test('that is lost rejects the requests inside with its loss, and refuses new ones', async ({
      lockName,
      queue,
      a,
    }) => {
      const own = new Error('own');
      const lost = rejection(
        a.locks.request(lockName, { ttl: 2 }, async (outer) => {
          const nested = rejection(
            a.locks.request(lockName, { reentrant }, ({ signal }) => aborted(signal)),
            EtcdLockLost,
          );
          const failing = rejection(
            a.locks.request(lockName, { reentrant }, async ({ signal }) => {
              await aborted(signal);
              throw own;
            }),
            Error,
          );
          await queue.remove(outer.key);
          expect(await nested).toBe(outer.signal.reason);
          expect(await failing).toBe(own);
          expect(own).toHaveProperty('lockError', outer.signal.reason);
          const late = rejection(a.locks.request(lockName, { reentrant }, unreachable), EtcdLockLost);
          expect(await late).toBe(outer.signal.reason);
        }),
        EtcdLockLost,
      );
      await lost;
      expect(await queue.entries()).toEqual([]);
    });
  });
}
