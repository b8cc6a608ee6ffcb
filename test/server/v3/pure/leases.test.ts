import { describe, expect, test } from 'vitest';
import type { Change } from '../../../../src/server/v3/store/history.ts';
import type { V3Store } from '../../../../src/server/v3/store/store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { ALL, deletion, newStore, put, range } from '../requests.ts';

/** A store, and the keys that each of its revisions has removed. */
function fresh(offset = 0) {
  const clock = new ManualClock(1_000_000_000_000 + offset);
  const store = newStore({ clock });
  const removals: { readonly revision: bigint; readonly keys: readonly string[] }[] = [];
  const notify = (changes: readonly Change[], revision: bigint) => {
    const keys = changes.filter(({ isRemoval }) => isRemoval).map(({ kv }) => kv.key);
    if (keys.length > 0) removals.push({ revision, keys });
  };
  store.watch({ range: ALL, from: 1n, notify });
  return { clock, store, removals };
}

const has = (store: V3Store, key: string): boolean => store.range(range({ key })).count === 1n;

describe('a lease', () => {
  test.each([0, 1, 250, 499])(
    'expires after its TTL, and at most half a second later (granted %i ms after a tick)',
    (offset) => {
      const { clock, store } = fresh(offset);
      store.leases.grant(7n, 10n);
      store.put(put({ key: 'a', lease: 7n }));
      clock.advance(9999);
      expect(has(store, 'a')).toBe(true);
      clock.advance(501);
      expect(has(store, 'a')).toBe(false);
      expect(store.leases.has(7n)).toBe(false);
    },
  );

  test.each([-5n, 0n, 1n, 2n])('with a TTL of %d s gets two seconds', (ttl) => {
    const { store } = fresh();
    expect(store.leases.grant(7n, ttl)).toMatchObject({ id: 7n, ttl: 2n });
  });

  test('that is kept alive gets its whole TTL again', () => {
    const { clock, store } = fresh();
    store.leases.grant(7n, 10n);
    clock.advance(9000);
    expect(store.leases.keepAlive(7n)).toBe(10n);
    clock.advance(9999);
    expect(store.leases.has(7n)).toBe(true);
    clock.advance(501);
    expect(store.leases.has(7n)).toBe(false);
  });

  test('that has expired is not kept alive, even before its keys are removed', () => {
    const { clock, store } = fresh(100);
    store.leases.grant(7n, 10n);
    clock.advance(10_000);
    expect(store.leases.has(7n)).toBe(true);
    expect(store.leases.keepAlive(7n)).toBe(0n);
  });

  test('removes its keys in one revision when it is revoked', () => {
    const { store, removals } = fresh();
    store.leases.grant(7n, 10n);
    for (const key of ['b', 'a', 'c']) store.put(put({ key, lease: 7n }));
    store.leases.revoke(7n);
    expect(removals).toEqual([{ revision: 5n, keys: ['a', 'b', 'c'] }]);
    expect(store.revision).toBe(5n);
  });

  test('without keys changes no revision when it ends', () => {
    const { clock, store } = fresh();
    store.leases.grant(7n, 10n);
    store.leases.grant(8n, 10n);
    store.leases.revoke(7n);
    clock.advance(10_500);
    expect(store.leases.has(8n)).toBe(false);
    expect(store.revision).toBe(1n);
  });

  test('does not remove a key that has another lease, or none, since', () => {
    const { store, removals } = fresh();
    store.leases.grant(7n, 10n);
    store.leases.grant(8n, 10n);
    for (const key of ['a', 'b', 'c']) store.put(put({ key, lease: 7n }));
    store.put(put({ key: 'a', lease: 8n }));
    store.put(put({ key: 'b' }));
    store.deleteRange(deletion({ key: 'c' }));
    store.put(put({ key: 'c' }));
    store.leases.revoke(7n);
    expect(removals.flatMap(({ keys }) => keys)).toEqual(['c']);
    expect(['a', 'b', 'c'].map((key) => has(store, key))).toEqual([true, true, true]);
  });
});

test('leases that expire in the same tick have a revision each', () => {
  const { clock, store, removals } = fresh();
  store.leases.grant(7n, 10n);
  store.leases.grant(8n, 10n);
  store.put(put({ key: 'a', lease: 7n }));
  store.put(put({ key: 'b', lease: 8n }));
  store.put(put({ key: 'c', lease: 7n }));
  clock.advance(10_500);
  expect(removals).toEqual([
    { revision: 5n, keys: ['a', 'c'] },
    { revision: 6n, keys: ['b'] },
  ]);
});

test('a store without leases has no timer', () => {
  const { clock, store } = fresh();
  store.leases.grant(7n, 10n);
  expect(clock.outstanding).toBe(1);
  store.leases.revoke(7n);
  clock.advance(500);
  expect(clock.outstanding).toBe(0);
});

test('a store that has been stopped has no timer, and no lease expires', () => {
  const { clock, store } = fresh();
  store.leases.grant(7n, 10n);
  store.stop();
  clock.advance(20_000);
  expect(clock.outstanding).toBe(0);
  expect(store.leases.has(7n)).toBe(true);
});
