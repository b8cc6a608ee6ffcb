import { describe, expect, test, vi } from 'vitest';
import { EtcdInsufficientPermissions, EtcdLockLost, EtcdLockTimeout } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import type { RequestOptions } from '../../../src/manager/options.ts';
import { alive } from '../../../src/recipe/entries/leftovers.ts';
import { SharedMemory } from '../../suites/stores/memory-client.ts';
import { memoryStoreClient } from '../../suites/stores/memory-store-client.ts';
import { gate } from '../../support/gate.ts';
import { listenersOf } from '../../support/leaks.ts';
import { useStillClock } from '../../support/still-clock.ts';
import { fakeTimersLeft } from '../../support/timers.ts';

const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

/** A manager on a store in memory, on a clock that only the test moves. */
function setUp() {
  useStillClock();
  const client = memoryStoreClient(new SharedMemory());
  const caller = new AbortController();
  const locks = new LockManager(client, { ttl: 30 });
  const queue = client.view('job');
  const { closing } = client.store.pending;
  /** What this process keeps because of requests. */
  const kept = () => ({
    alive: alive.size,
    listeners: [listenersOf(caller.signal), listenersOf(closing)],
    timers: fakeTimersLeft(),
  });
  /** Makes a request, and returns how it ended: with its error, or else with the result of its callback. */
  const request = (options: RequestOptions = {}, callback: () => unknown = () => 'held'): Promise<unknown> =>
    locks
      .request('job', { signal: caller.signal, timeout: 20, ...options }, (held) =>
        held ? callback() : 'not available',
      )
      .catch((error: unknown) => error);
  return { client, caller, locks, queue, kept, request };
}

type SetUp = ReturnType<typeof setUp>;

describe('a request leaves no entry, listener or timer, and no value among the live ones, when it', () => {
  test.each<[string, (setUp: SetUp) => Promise<unknown>, unknown]>([
    ['has held the lock', ({ request }) => request(), 'held'],
    ['has waited and held the lock', async ({ request }) => (await Promise.all([request(), request()]))[1], 'held'],
    [
      'was refused by the store',
      ({ client, request }) => {
        const refused = new EtcdInsufficientPermissions('no', { httpStatus: 401 });
        client.intercept(({ kind, send }) => (kind === 'append' ? Promise.reject(refused) : send()));
        return request();
      },
      expect.any(EtcdInsufficientPermissions),
    ],
    [
      'was aborted while it waited in the store',
      async ({ caller, queue, request }) => {
        const { key } = await queue.put('holder');
        const ended = request();
        await pass(1);
        caller.abort('enough');
        const end = await ended;
        await queue.remove(key);
        return end;
      },
      'enough',
    ],
    [
      'has timed out while it waited in the store',
      async ({ queue, request }) => {
        const { key } = await queue.put('holder');
        const ended = request();
        await pass(21);
        await queue.remove(key);
        return ended;
      },
      expect.any(EtcdLockTimeout),
    ],
    [
      'has timed out while it waited in this process',
      async ({ request }) => {
        const held = gate();
        const holding = request({ timeout: 0 }, () => held.opened);
        const ended = request({ timeout: 5 });
        await pass(6);
        held.open();
        await holding;
        return ended;
      },
      expect.any(EtcdLockTimeout),
    ],
    [
      'found the lock taken',
      async ({ queue, request }) => {
        const { key } = await queue.put('holder');
        const end = await request({ ifAvailable: true });
        await queue.remove(key);
        return end;
      },
      'not available',
    ],
    [
      'has lost the lock',
      ({ queue, request }) =>
        request({}, async () => {
          const [own] = await queue.entries();
          await queue.remove(own?.key ?? '');
          await pass(11);
        }),
      expect.any(EtcdLockLost),
    ],
    [
      'has held the lock for longer than allowed',
      ({ request }) => request({ maxHold: 2 }, () => pass(3)),
      expect.any(EtcdLockLost),
    ],
  ])('%s', async (_, run, end) => {
    const it = setUp();
    const before = it.kept();
    expect(await run(it)).toEqual(end);
    // What is under way needs turns of the event loop, but no time.
    for (let turns = 0; turns < 100 && fakeTimersLeft().length > before.timers.length; turns += 1) await pass(0);
    expect(it.kept()).toEqual(before);
    expect(await it.queue.entries()).toEqual([]);
  });
});

test('a hold lasts until the last reentrant request inside has ended, also one that begins after the callback', async () => {
  const { locks, queue } = setUp();
  const [first, second] = [gate(), gate()];
  const inside = (work: () => unknown) => locks.request('job', { reentrant: true }, work);
  const joined: Promise<unknown>[] = [];
  const ended = locks.request('job', () => {
    joined.push(
      inside(async () => {
        await first.opened;
        joined.push(inside(() => second.opened));
      }),
    );
  });
  await pass(0);
  first.open();
  await pass(0);
  expect(joined).toHaveLength(2);
  expect(await queue.entries()).toHaveLength(1);
  second.open();
  await Promise.all([ended, ...joined]);
  expect(await queue.entries()).toEqual([]);
});
