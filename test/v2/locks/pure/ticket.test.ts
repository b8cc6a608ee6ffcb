import { describe, expect, test, vi } from 'vitest';
import { Deadline } from '../../../../src/base/time.ts';
import { EtcdConnectionFailed, EtcdLockExpired } from '../../../../src/errors.ts';
import type { Ticket, TicketOptions } from '../../../../src/recipe/store.ts';
import { MemoryStore } from '../../../../src/server/store/memory.ts';
import { Store } from '../../../../src/server/store/store.ts';
import { rejection } from '../../../support/clients.ts';
import { gate } from '../../../support/gate.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { useStillClock } from '../../../support/still-clock.ts';

const DIR = '/_locks/job';
/** Seconds. */
const TTL = 30;

const LOST = new EtcdConnectionFailed('the answer was lost', { outcomeUnknown: true });

/** A queue in memory, its entries as `value` and TTL, and tickets for it. */
function setUp() {
  useStillClock();
  const keys = new MemoryStore(new Store(new ManualClock()));
  const queue = keys.store.queue('job');
  const entries = async () => (await queue.read()).inOrder().map(({ value, ttl }) => [value, ttl]);
  const put = async (value: string) => (await keys.createInOrder(DIR, value, { ttl: 600 })).node;
  const ticket = (value = 'mine', options: TicketOptions = {}) => queue.ticket(value, options);
  return { keys, queue, entries, put, ticket };
}

/** Makes the next append wait for `answer` after it was carried out. */
function slowAppend(keys: MemoryStore) {
  const { opened, open } = gate();
  const append = vi.spyOn(keys, 'createInOrder').mockImplementationOnce(async (...args) => {
    const appended = await MemoryStore.prototype.createInOrder.apply(keys, args);
    await opened;
    return appended;
  });
  return { append, answer: open };
}

const enter = (ticket: Ticket, ttl: number | null = TTL) => ticket.enter(ttl, { failed: 0, keepAlive: true });

describe('entering the queue', () => {
  test('again renews the entry, also with another TTL or none, and keeps its key', async () => {
    const { entries, put, ticket } = setUp();
    const mine = ticket();
    const first = await enter(mine);
    await put('other');
    for (const ttl of [60, null, 10]) {
      expect(await enter(mine, ttl)).toMatchObject({ key: first?.key, rank: first?.rank, granted: ttl });
      expect(await entries()).toEqual([
        ['mine', ttl ?? undefined],
        ['other', 600],
      ]);
    }
  });

  test('takes over the first entry with its value, and removes the others', async () => {
    const { entries, put, ticket } = setUp();
    const { key } = await put('mine');
    await put('other');
    await put('mine');
    expect(await enter(ticket('mine', { mayExist: true }))).toMatchObject({ key, granted: TTL });
    expect(await entries()).toEqual([
      ['mine', TTL],
      ['other', 600],
    ]);
  });

  test('after an append whose answer was lost finds that entry, and appends no other', async () => {
    const { keys, entries, ticket } = setUp();
    const append = vi.spyOn(keys, 'createInOrder').mockImplementationOnce(async (...args) => {
      await MemoryStore.prototype.createInOrder.apply(keys, args);
      throw LOST;
    });
    const mine = ticket();
    await rejection(enter(mine), EtcdConnectionFailed);
    expect(await enter(mine)).toMatchObject({ value: 'mine' });
    expect(append).toHaveBeenCalledTimes(1);
    expect(await entries()).toEqual([['mine', TTL]]);
  });

  test('appends again if the first append was not carried out; if it is carried out late, its entry is removed', async () => {
    const { keys, entries, put, ticket } = setUp();
    vi.spyOn(keys, 'createInOrder').mockRejectedValueOnce(LOST);
    const mine = ticket();
    await rejection(enter(mine), EtcdConnectionFailed);
    const own = await enter(mine);
    await put('mine');
    // The second listing shows it: the first one came with the append.
    for (const _ of [1, 2]) expect((await mine.standing({})).behind).toBeUndefined();
    expect(await entries()).toEqual([['mine', TTL]]);
    expect(mine.last?.key).toBe(own?.key);
    await mine.leave();
  });

  test.each([
    ['again', async () => {}],
    ['after a search', (mine: Ticket) => mine.find()],
  ])('%s, while an append is under way, waits for its answer, and renews its entry', async (_, before) => {
    const { keys, entries, ticket } = setUp();
    const { answer, append } = slowAppend(keys);
    const mine = ticket();
    const caller = new AbortController();
    const entering = mine.enter(TTL, { failed: 0, keepAlive: true, signal: caller.signal }).catch(() => 'aborted');
    await vi.advanceTimersByTimeAsync(0);
    caller.abort(new Error('enough'));
    expect(await entering).toBe('aborted');
    const again = before(mine).then(() => enter(mine, 60));
    answer();
    expect(await again).toMatchObject({ granted: 60 });
    expect(append).toHaveBeenCalledTimes(1);
    expect(await entries()).toEqual([['mine', 60]]);
  });

  test('of a value that has an entry already, without `mayExist`, does not take over that entry', async () => {
    const { put, ticket } = setUp();
    const { key } = await put('mine');
    expect((await enter(ticket()))?.key).not.toBe(key);
  });
});

test('the search for an append that was lost does not remove a later entry with the same value, also in a new cluster', async () => {
  const { keys, entries, ticket } = setUp();
  const earlier = ticket();
  const own = await enter(earlier);
  await keys.delete(own?.key ?? '');
  await enter(earlier);
  vi.spyOn(keys, 'createInOrder').mockRejectedValueOnce(LOST);
  await rejection(enter(earlier), EtcdConnectionFailed);
  await earlier.leave();
  Object.assign(keys, { clusterId: 'new' });
  await enter(ticket());
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await entries()).toEqual([['mine', TTL]]);
});

describe('leaving the queue', () => {
  test('removes the own entry alone, and does nothing the second time', async () => {
    const { entries, put, ticket } = setUp();
    await put('first');
    const mine = ticket();
    await enter(mine);
    await put('last');
    await mine.leave();
    await mine.leave();
    expect(await entries()).toEqual([
      ['first', 600],
      ['last', 600],
    ]);
  });

  test('removes the own entry also if python-etcd has renewed it in the meantime', async () => {
    const { keys, entries, ticket } = setUp();
    const mine = ticket();
    const own = await enter(mine);
    await keys.set(own?.key ?? '', 'mine', { ttl: 60 });
    await mine.leave();
    expect(await entries()).toEqual([]);
  });

  test('keeps an entry of another cluster, even if it has the same key and value', async () => {
    const { keys, entries, ticket } = setUp();
    const mine = ticket();
    const own = await enter(mine);
    await keys.set(own?.key ?? '', 'mine', { ttl: 60 });
    vi.spyOn(keys, 'get').mockImplementationOnce(async (...args) => ({
      ...(await MemoryStore.prototype.get.apply(keys, args)),
      clusterId: 'another',
    }));
    await mine.leave();
    expect(await entries()).toEqual([['mine', 60]]);
  });

  test.each(['mine', '', 'not UTF-8: \ufffd'])(
    'keeps an entry with another value under the own key: %j',
    async (value) => {
      const { keys, entries, ticket } = setUp();
      const mine = ticket(value);
      const own = await enter(mine);
      await keys.set(own?.key ?? '', 'not mine', { ttl: 60 });
      const removal = vi.spyOn(keys, 'delete').mockImplementation((...args) => {
        if (removal.mock.calls.length > 3) throw new Error('removed again and again');
        return MemoryStore.prototype.delete.apply(keys, args);
      });
      await mine.leave();
      expect(await entries()).toEqual([['not mine', 60]]);
      expect(removal).toHaveBeenCalledTimes(1);
    },
  );

  test('with `until` sets the TTL to the seconds left, rounded up', async () => {
    const { entries, ticket } = setUp();
    const mine = ticket();
    await enter(mine);
    await mine.leave({ until: Deadline.after(4.2) });
    expect(await entries()).toEqual([['mine', 5]]);
  });

  test('with a past `until` removes the entry', async () => {
    const { entries, ticket } = setUp();
    const mine = ticket();
    await enter(mine);
    await mine.leave({ until: Deadline.after(-1) });
    expect(await entries()).toEqual([]);
  });

  test('continues in the background after a failure', async () => {
    const { keys, entries, ticket } = setUp();
    const mine = ticket();
    await enter(mine);
    vi.spyOn(keys, 'delete').mockRejectedValueOnce(LOST);
    await rejection(mine.leave(), EtcdConnectionFailed);
    expect(await entries()).toEqual([['mine', TTL]]);
    await vi.advanceTimersByTimeAsync(500);
    expect(await entries()).toEqual([]);
  });

  test('that has not succeeded when the client is closed names its key', async () => {
    const { keys, ticket } = setUp();
    const mine = ticket();
    const own = await enter(mine);
    vi.spyOn(keys, 'delete').mockRejectedValue(LOST);
    await rejection(mine.leave(), EtcdConnectionFailed);
    const left = keys.cleanups.settle(1);
    await vi.advanceTimersByTimeAsync(1000);
    expect(await left).toEqual([own?.key]);
  });

  test('while the append is under way waits for its answer, and removes its key', async () => {
    const { keys, entries, ticket } = setUp();
    const { answer } = slowAppend(keys);
    const caller = new AbortController();
    const mine = ticket();
    const entering = mine.enter(TTL, { failed: 0, keepAlive: true, signal: caller.signal }).catch(() => 'aborted');
    await vi.advanceTimersByTimeAsync(0);
    caller.abort(new Error('enough'));
    expect(await entering).toBe('aborted');
    expect(await entries()).toEqual([['mine', TTL]]);
    const left = mine.leave();
    answer();
    await left;
    expect(await entries()).toEqual([]);
  });
});

describe('the standing of an entry', () => {
  test('that a stale listing does not show is read again by quorum', async () => {
    const { keys, put, ticket } = setUp();
    const { key } = await put('other');
    const mine = ticket();
    await enter(mine);
    const { node } = await keys.get(DIR);
    const stale = { ...(await keys.get('/')), node: { ...node, nodes: [] } };
    // The listing that came with the append.
    await mine.standing({});
    const read = vi.spyOn(keys, 'get').mockResolvedValueOnce(stale);
    expect((await mine.standing({})).behind?.key).toBe(key);
    expect(read.mock.calls.map(([, options]) => options?.quorum)).toEqual([false, true]);
  });

  test.each<[string, (keys: MemoryStore, key: string) => Promise<unknown>, string]>([
    ['was removed', (keys, key) => keys.delete(key), 'its key is gone'],
    ['has another value', (keys, key) => keys.set(key, 'not mine'), 'another value'],
    [
      'was removed and created again',
      async (keys, key) => {
        await keys.delete(key);
        await keys.set(key, 'mine');
      },
      're-created',
    ],
  ])('that %s is its loss', async (_, change, message) => {
    const { keys, ticket } = setUp();
    const mine = ticket();
    const own = await enter(mine);
    // The listing that came with the append.
    await mine.standing({});
    await change(keys, own?.key ?? '');
    expect((await rejection(mine.standing({}), EtcdLockExpired)).message).toContain(message);
    const lost = await mine.verify();
    expect(lost).toBeInstanceOf(EtcdLockExpired);
  });

  test('that python-etcd has renewed is that of the same entry', async () => {
    const { keys, ticket } = setUp();
    const mine = ticket();
    const own = await enter(mine);
    await mine.standing({});
    await keys.set(own?.key ?? '', 'mine', { ttl: 60 });
    expect(await mine.standing({})).toMatchObject({ behind: undefined, fencingToken: own?.rank });
    expect(await mine.verify()).toBeUndefined();
  });
});

test('an eviction removes an entry only if it still has the value that was read', async () => {
  const { keys, queue, entries, put } = setUp();
  const [evicted, changed] = [await put('evicted'), await put('changed')];
  const [first, second] = (await queue.read()).inOrder();
  await keys.set(changed.key, 'used again', { ttl: 60 });
  for (const entry of [first, second]) if (entry) await queue.evict(entry, {});
  expect(evicted.key).toBe(first?.key);
  expect(await entries()).toEqual([['used again', 60]]);
});
