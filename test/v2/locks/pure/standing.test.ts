import { describe, expect, test, vi } from 'vitest';
import { MemoryStore } from '../../../../src/server/store/memory.ts';
import { Store } from '../../../../src/server/store/store.ts';
import type { KeysApi } from '../../../../src/v2/keys-api.ts';
import { useStillClock } from '../../../support/still-clock.ts';

const DIR = '/_locks/job';
/** Seconds: a wait is silent for long after 8.125 s. */
const TTL = 30;

/** A waiter behind another entry, in a store in memory whose requests the test counts. */
async function setUp(value = 'mine', ahead: readonly string[] = ['holder']) {
  useStillClock();
  const keys = new MemoryStore(new Store());
  for (const one of ahead) await keys.createInOrder(DIR, one, { ttl: 600 });
  const ticket = keys.store.queue('job').ticket(value);
  await ticket.enter(TTL, { failed: 0, keepAlive: true });
  const [reads, watches] = [vi.spyOn(keys, 'get'), vi.spyOn(keys, 'watch')];
  /** What the last watch asked for. */
  const watched = (): Parameters<KeysApi['watch']> => watches.mock.lastCall ?? expect.unreachable();
  const stand = () => ticket.standing({});
  const wait = async () => {
    const { behind } = await stand();
    return ticket.changed(behind ?? expect.unreachable(), {});
  };
  const write = (name: string) => keys.set(`/other/${name}`, 'v');
  const index = async () => (await keys.get('/')).index;
  return { keys, reads, watches, watched, stand, wait, write, index };
}

const keyOf = async (keys: KeysApi, value: string): Promise<string> =>
  (await keys.get(DIR)).node.nodes.find((node) => node.value === value)?.key ?? expect.unreachable();

/** Lets what is under way go on, without any time passing. */
const turns = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

/** Returns the result of the wait if it has ended, else `waits`. */
async function outcomeOf(waiting: Promise<boolean>): Promise<boolean | 'waits'> {
  await turns();
  return Promise.race([waiting, Promise.resolve('waits' as const)]);
}

describe('the watch of a waiter on etcd v2', () => {
  test('begins after the index of the listing that came with the append', async () => {
    const { keys, stand, watched, write, index, reads, wait } = await setUp();
    const [key, after] = [await keyOf(keys, 'holder'), await index()];
    // Others write between the append and the watch.
    await write('a');
    reads.mockClear();
    const waiting = wait();
    await turns();
    expect(reads).not.toHaveBeenCalled();
    expect(watched()).toMatchObject([key, { after, recursive: false }]);
    await keys.delete(key);
    expect(await outcomeOf(waiting)).toBe(true);
    expect((await stand()).behind).toBeUndefined();
  });

  test('begins after the index of the last listing, after an earlier wait', async () => {
    const { keys, watched, wait, write, index, reads } = await setUp('mine', ['first', 'second']);
    const first = wait();
    await turns();
    await keys.delete(await keyOf(keys, 'second'));
    expect(await outcomeOf(first)).toBe(true);
    await write('a');
    const [key, after] = [await keyOf(keys, 'first'), await index()];
    // As if others wrote between the listing and the watch.
    reads.mockImplementationOnce(async (...args) => {
      const listing = await MemoryStore.prototype.get.apply(keys, args);
      await write('b');
      return listing;
    });
    const second = wait();
    await turns();
    expect(watched()).toMatchObject([key, { after }]);
    await keys.delete(key);
    expect(await outcomeOf(second)).toBe(true);
  });

  test('reports a deletion between the listing and the watch by itself, without a read', async () => {
    const { keys, reads, watches, stand, wait } = await setUp();
    const key = await keyOf(keys, 'holder');
    watches.mockImplementationOnce(async (...args) => {
      await keys.delete(key);
      return MemoryStore.prototype.watch.apply(keys, args);
    });
    reads.mockClear();
    expect(await outcomeOf(wait())).toBe(true);
    expect(reads).not.toHaveBeenCalled();
    expect(watches).toHaveBeenCalledTimes(1);
    expect((await stand()).behind).toBeUndefined();
    expect(reads).toHaveBeenCalledTimes(1);
  });

  test('of the first waiter with a limit covers all entries before its own', async () => {
    const { keys, wait, watched, index } = await setUp('limit:2:mine', ['limit:2:a', 'limit:2:b']);
    const waiting = wait();
    await turns();
    expect(watched()).toMatchObject([DIR, { after: await index(), recursive: true }]);
    await keys.delete(await keyOf(keys, 'limit:2:a'));
    expect(await outcomeOf(waiting)).toBe(true);
  });
});

describe('the reads of a waiter on etcd v2', () => {
  const quorumAfter = async (end: 'event' | 'silence' | 'failure') => {
    const { keys, reads, watches, stand, wait } = await setUp('mine', ['first', 'second']);
    if (end === 'failure') watches.mockResolvedValueOnce(undefined);
    const waiting = wait();
    await turns();
    if (end === 'event') await keys.delete(await keyOf(keys, 'second'));
    if (end === 'silence') await vi.advanceTimersByTimeAsync(8130);
    expect(await outcomeOf(waiting)).toBe(end !== 'failure');
    reads.mockClear();
    expect((await stand()).behind?.value).toBe(end === 'event' ? 'first' : 'second');
    return reads.mock.calls.map(([, options]) => options?.quorum ?? false);
  };

  test.each([
    ['may be answered by the member that has just reported an event', 'event', false],
    ['are by quorum after a long silence: the member may be stale', 'silence', true],
    ['are by quorum after a failed wait', 'failure', true],
  ] as const)('%s', async (_, end, quorum) => {
    expect(await quorumAfter(end)).toEqual([quorum]);
  });
});

test('a holder is asked about by quorum: a stale member may show an entry that is gone', async () => {
  const { keys, reads } = await setUp('mine', []);
  const ticket = keys.store.queue('job').ticket('mine', { mayExist: true });
  await ticket.find();
  reads.mockClear();
  expect(await ticket.verify()).toBeUndefined();
  expect(reads.mock.calls).toMatchObject([[expect.any(String), { quorum: true }]]);
});
