import { describe, expect, test } from 'vitest';
import type { StoreEvent } from '../../../src/server/store/history.ts';
import { MemoryStore } from '../../../src/server/store/memory.ts';
import { Store } from '../../../src/server/store/store.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const YEAR = 365 * 24 * 3600;

function fresh(now?: number) {
  const clock = new ManualClock(now);
  return { clock, store: new Store(clock) };
}

/** A clock that tells the time of each reading of it. */
function recordingClock() {
  const clock = new ManualClock();
  const readAt: number[] = [];
  const now = () => {
    readAt.push(performance.now());
    return clock.now();
  };
  return { clock: { now, after: (ms: number, fn: () => void) => clock.after(ms, fn) }, readAt };
}

function has(store: Store, key: string): boolean {
  try {
    store.get(key, {});
    return true;
  } catch {
    return false;
  }
}

/** Every event after an index so far. */
function eventsAfter(store: Store, index: number): StoreEvent[] {
  const events: StoreEvent[] = [];
  for (let since = index + 1; since <= store.index; since += 1) {
    const event = store.watch({ key: '/', recursive: true, since, notify: () => {} });
    if (event?.node.modifiedIndex === since) events.push(event);
  }
  return events;
}

describe('a key', () => {
  test.for<[string, (keys: MemoryStore, index: number) => Promise<{ readonly sentAt: number }>]>([
    ['set', (keys) => keys.set('/k', 'v', { ttl: 600 })],
    ['create in order', (keys) => keys.createInOrder('/dir', 'v', { ttl: 600 })],
    ['renew', (keys, prevIndex) => keys.renew('/there', { prevValue: 'v', prevIndex, ttl: 600 })],
  ])('has its TTL from `sentAt` of the answer or later: %s', async ([, write]) => {
    const { clock, readAt } = recordingClock();
    const keys = new MemoryStore(new Store(clock));
    const { node } = await keys.set('/there', 'v', { ttl: 60 });
    readAt.length = 0;
    const { sentAt } = await write(keys, node.modifiedIndex);
    expect(sentAt).toBeLessThanOrEqual(readAt[0] ?? Number.NaN);
    await keys.close();
  });

  test('has the given TTL in the answer, although the clock advances during the write', () => {
    const { clock } = fresh();
    const now = () => {
      clock.advance(1);
      return clock.now();
    };
    const store = new Store({ now, after: (ms, fn) => clock.after(ms, fn) });
    expect(store.set('/k', 'v', { ttl: 600 }).node.ttl).toBe(600);
    expect(store.set('/k', 'v', { ttl: 600 }).node.ttl).toBe(600);
    expect(store.set('/k', 'v', { ttl: 600, prevExist: true }).node.ttl).toBe(600);
    expect(store.set('/k', 'v', { ttl: 600, prevValue: 'v' }).node.ttl).toBe(600);
  });

  test.each([0, 1, 250, 499, 500, 501, 999])(
    'set %i ms past a whole second expires at the first half second at or after its TTL',
    (past) => {
      const { clock, store } = fresh(1_000_000_000_000 + past);
      store.set('/k', 'v', { ttl: 2 });
      const late = (500 - (past % 500)) % 500;
      clock.advance(2000 + late - 1);
      expect(has(store, '/k')).toBe(true);
      clock.advance(1);
      expect(has(store, '/k')).toBe(false);
      expect(clock.outstanding).toBe(0);
    },
  );

  test('with a TTL of 0 expires at the next half second', () => {
    const { clock, store } = fresh(1_000_000_000_100);
    expect(store.set('/k', 'v', { ttl: 0 }).node).not.toHaveProperty('ttl');
    clock.advance(399);
    expect(has(store, '/k')).toBe(true);
    clock.advance(1);
    expect(has(store, '/k')).toBe(false);
  });

  test('with a TTL of 0, set exactly on a half second, expires right after the write', () => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: 0 });
    expect(has(store, '/k')).toBe(true);
    clock.advance(0);
    expect(has(store, '/k')).toBe(false);
  });

  test('shows the seconds it has left, rounded up', () => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: 3 });
    const seen: unknown[] = [];
    for (let i = 0; i < 6; i += 1) {
      const { ttl, expiration } = store.get('/k', {});
      seen.push(ttl);
      expect(expiration).toBe('2001-09-09T01:46:43.000Z');
      clock.advance(i === 4 ? 499 : 500);
    }
    expect(seen).toEqual([3, 3, 2, 2, 1, 1]);
  });

  test('with a TTL of a year expires after a year', () => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: YEAR });
    clock.advance(YEAR * 1000 - 1);
    expect(store.get('/k', {}).ttl).toBe(1);
    clock.advance(1);
    expect(has(store, '/k')).toBe(false);
  });

  test('with a TTL beyond the year 2262 never expires', () => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: 10_000_000_000 });
    expect(clock.outstanding).toBe(0);
    clock.advance(1000 * YEAR * 1000);
    expect(has(store, '/k')).toBe(true);
  });

  test.each<[string, (store: Store) => void]>([
    ['a new value without a TTL', (store) => store.set('/k', 'w', {})],
    ['a swap without a TTL', (store) => store.set('/k', 'w', { prevValue: 'v' })],
    ['an update without a TTL', (store) => store.set('/k', 'w', { prevExist: true })],
    ['a refresh to no TTL', (store) => store.set('/k', undefined, { ttl: null, refresh: true, prevValue: 'v' })],
  ])('does not expire after %s', (_, write) => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: 1 });
    write(store);
    clock.advance(YEAR * 1000);
    expect(has(store, '/k')).toBe(true);
    expect(clock.outstanding).toBe(0);
  });

  test.each<[string, (store: Store) => void]>([
    ['removed', (store) => store.delete('/k', {})],
    ['removed by value', (store) => store.delete('/k', { prevValue: 'v' })],
  ])('that is %s does not expire, and neither does a new key of the same name', (_, remove) => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: 1 });
    remove(store);
    store.set('/k', 'w', {});
    clock.advance(10_000);
    expect(store.get('/k', {}).value).toBe('w');
    expect(store.index).toBe(6);
  });

  test('that is renewed expires when its latest TTL ends, earlier or later than before', () => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: 100 });
    store.set('/k', undefined, { ttl: 5, refresh: true, prevValue: 'v' });
    clock.advance(4500);
    store.set('/k', undefined, { ttl: 2, refresh: true, prevValue: 'v' });
    clock.advance(1999);
    expect(has(store, '/k')).toBe(true);
    clock.advance(1);
    expect(has(store, '/k')).toBe(false);
    expect(clock.outstanding).toBe(0);
  });
});

describe('a directory with a TTL', () => {
  test('expires with everything below it in one event, and cancels the expiry of the keys below', () => {
    const { clock, store } = fresh();
    store.set('/d', undefined, { dir: true, ttl: 2 });
    store.set('/d/a', 'v', { ttl: 50 });
    store.set('/d/b/c', 'v', { ttl: 2 });
    store.set('/d/b/e', 'v', {});
    const before = store.index;
    clock.advance(2000);
    expect(has(store, '/d')).toBe(false);
    expect(eventsAfter(store, before)).toMatchObject([{ action: 'expire', node: { key: '/d', dir: true } }]);
    expect(clock.outstanding).toBe(0);
    clock.advance(100_000);
    expect(store.index).toBe(before + 1);
  });

  test('loses keys whose TTL ends before its own', () => {
    const { clock, store } = fresh();
    store.set('/d', undefined, { dir: true, ttl: 10 });
    store.set('/d/a', 'v', { ttl: 1 });
    store.set('/d/b', 'v', { ttl: 10 });
    clock.advance(1000);
    expect(store.get('/d', {}).nodes.map(({ key }) => key)).toEqual(['/d/b']);
    clock.advance(9000);
    expect(eventsAfter(store, 6).map(({ node }) => node.key)).toEqual(['/d/a', '/d']);
  });

  test('that is renewed stays, and so do the keys in it', () => {
    const { clock, store } = fresh();
    store.set('/d', undefined, { dir: true, ttl: 1 });
    store.set('/d/a', 'v', {});
    store.set('/d', undefined, { dir: true, ttl: 100, prevExist: true });
    clock.advance(50_000);
    expect(store.get('/d/a', {}).value).toBe('v');
    clock.advance(50_000);
    expect(has(store, '/d')).toBe(false);
  });
});

describe('expiry events', () => {
  test('come in the order of expiry, each with its own index and the previous value', () => {
    const { clock, store } = fresh();
    const ttls = [7, 3, 5, 1, 6, 2, 4];
    for (const ttl of ttls) store.set(`/k${ttl}`, `v${ttl}`, { ttl });
    const before = store.index;
    clock.advance(20_000);
    expect(eventsAfter(store, before)).toMatchObject(
      [1, 2, 3, 4, 5, 6, 7].map((ttl, i) => ({
        action: 'expire',
        node: { key: `/k${ttl}`, modifiedIndex: before + 1 + i },
        prevNode: { key: `/k${ttl}`, value: `v${ttl}` },
        silent: false,
      })),
    );
    expect(eventsAfter(store, before)[0]?.node).not.toHaveProperty('value');
  });

  test('of the same half second also come in the order of expiry', () => {
    const { clock, store } = fresh();
    store.set('/d/third', 'v', { ttl: 2 });
    for (const name of ['a', 'b', 'c']) {
      clock.advance(100);
      store.set(`/${name}`, 'v', { ttl: 1 });
    }
    const before = store.index;
    clock.advance(5000);
    expect(eventsAfter(store, before).map(({ node }) => node.key)).toEqual(['/a', '/b', '/c', '/d/third']);
  });

  test('notify watchers of the key, of its directory and of keys in it', () => {
    const { clock, store } = fresh();
    store.set('/d', undefined, { dir: true, ttl: 1 });
    store.set('/d/a', 'v', {});
    const notified: string[] = [];
    const wait = (name: string, key: string, recursive: boolean) =>
      store.watch({
        key,
        recursive,
        since: store.index + 1,
        notify: ({ node }) => notified.push(`${name} by ${node.key}`),
      });
    wait('child', '/d/a', false);
    wait('itself', '/d', false);
    wait('above', '/', true);
    wait('other', '/e', true);
    clock.advance(1000);
    expect(notified.sort()).toEqual(['above by /d', 'child by /d', 'itself by /d']);
    expect(store.watchers).toBe(1);
  });
});
