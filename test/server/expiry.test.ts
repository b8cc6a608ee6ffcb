import { describe, expect, test } from 'vitest';
import type { StoreEvent } from '../../src/server/store/history.ts';
import { Store } from '../../src/server/store/store.ts';
import { ManualClock } from '../support/manual-clock.ts';

const YEAR = 365 * 24 * 3600;

function fresh(now?: number) {
  const clock = new ManualClock(now);
  return { clock, store: new Store(clock) };
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
  test('is told the TTL it was given, though time passes meanwhile', () => {
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
    'goes at the first half second at or after its TTL, set %i ms past a whole second',
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

  test('with a TTL of 0 goes at the next half second', () => {
    const { clock, store } = fresh(1_000_000_000_100);
    expect(store.set('/k', 'v', { ttl: 0 }).node).not.toHaveProperty('ttl');
    clock.advance(399);
    expect(has(store, '/k')).toBe(true);
    clock.advance(1);
    expect(has(store, '/k')).toBe(false);
  });

  test('with a TTL of 0, set on a half second, goes as soon as time goes on', () => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: 0 });
    expect(has(store, '/k')).toBe(true);
    clock.advance(0);
    expect(has(store, '/k')).toBe(false);
  });

  test('tells the time it has left, rounded up', () => {
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

  test('stays a year if it may', () => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: YEAR });
    clock.advance(YEAR * 1000 - 1);
    expect(store.get('/k', {}).ttl).toBe(1);
    clock.advance(1);
    expect(has(store, '/k')).toBe(false);
  });

  test('stays for ever where the time it has ends after all time', () => {
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
  ])('stays after %s', (_, write) => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: 1 });
    write(store);
    clock.advance(YEAR * 1000);
    expect(has(store, '/k')).toBe(true);
    expect(clock.outstanding).toBe(0);
  });

  test.each<[string, (store: Store) => void]>([
    ['removed', (store) => store.delete('/k', {})],
    ['removed as it was', (store) => store.delete('/k', { prevValue: 'v' })],
  ])('that is %s does not expire as well, nor does the next of its name', (_, remove) => {
    const { clock, store } = fresh();
    store.set('/k', 'v', { ttl: 1 });
    remove(store);
    store.set('/k', 'w', {});
    clock.advance(10_000);
    expect(store.get('/k', {}).value).toBe('w');
    expect(store.index).toBe(6);
  });

  test('that is renewed goes when the last renewal says, sooner or later', () => {
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
  test('takes all below it along; one event tells of it, and their own TTLs are forgotten', () => {
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

  test('loses those whose time is up before its own', () => {
    const { clock, store } = fresh();
    store.set('/d', undefined, { dir: true, ttl: 10 });
    store.set('/d/a', 'v', { ttl: 1 });
    store.set('/d/b', 'v', { ttl: 10 });
    clock.advance(1000);
    expect(store.get('/d', {}).nodes.map(({ key }) => key)).toEqual(['/d/b']);
    clock.advance(9000);
    expect(eventsAfter(store, 6).map(({ node }) => node.key)).toEqual(['/d/a', '/d']);
  });

  test('that is renewed stays, and what is in it with it', () => {
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

describe('the events', () => {
  test('come in the order of expiry, one index each, with what was there before', () => {
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

  test('of one half second come in the order of expiry, too', () => {
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

  test('wake who waits for the key, its directory or what was in it', () => {
    const { clock, store } = fresh();
    store.set('/d', undefined, { dir: true, ttl: 1 });
    store.set('/d/a', 'v', {});
    const woken: string[] = [];
    const wait = (name: string, key: string, recursive: boolean) =>
      store.watch({
        key,
        recursive,
        since: store.index + 1,
        notify: ({ node }) => woken.push(`${name} by ${node.key}`),
      });
    wait('child', '/d/a', false);
    wait('itself', '/d', false);
    wait('above', '/', true);
    wait('stranger', '/e', true);
    clock.advance(1000);
    expect(woken.sort()).toEqual(['above by /d', 'child by /d', 'itself by /d']);
    expect(store.watchers).toBe(1);
  });
});
