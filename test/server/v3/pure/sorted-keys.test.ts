import { describe, expect, test } from 'vitest';
import { SortedKeys } from '../../../../src/server/v3/store/sorted-keys.ts';
import { ALL, newStore, put, range } from '../requests.ts';

/** Returns numbers from 0 on and less than `end` that look random, always the same. */
function numbers(seed: number): (end: number) => number {
  let state = seed;
  return (end) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * end);
  };
}

test('keys in lists are found as in one sorted list', () => {
  const next = numbers(1);
  const [keys, plain] = [new SortedKeys(), new Set<string>()];
  const anyKey = () => `${next(4000)}`;
  for (let round = 0; round < 20; round += 1) {
    // Grows in some rounds, and shrinks in others.
    for (let i = 0; i < 2000; i += 1) {
      const key = anyKey();
      if (plain.has(key) && (round % 4 > 1 || i % 3 === 0)) {
        plain.delete(key);
        keys.delete(key);
      } else if (!plain.has(key) && round % 4 < 2) {
        plain.add(key);
        keys.add(key);
      }
    }
    const sorted = [...plain].sort();
    for (let i = 0; i < 50; i += 1) {
      const [start, end, limit] = [anyKey(), i % 3 === 0 ? undefined : anyKey(), next(3) * 500];
      const expected = sorted.filter((key) => key >= start && (end === undefined || key < end));
      expect(keys.count(start, end)).toBe(expected.length);
      expect(keys.range(start, end, limit)).toEqual(expected.slice(0, limit));
    }
  }
  for (const key of plain) keys.delete(key);
  expect(keys.range('', undefined, 10)).toEqual([]);
  expect(keys.count('', 'x')).toBe(0);
});

describe('a range in an order', () => {
  const store = newStore();
  const next = numbers(2);
  for (let i = 0; i < 300; i += 1) store.put(put({ key: `${next(100)}`, value: `${next(10)}` }));

  test.each(
    ['key', 'version', 'create revision', 'revision of the change', 'value'].map((name, i) => [name, i] as const),
  )('by %s has the same first keys with a limit as without', (_, target) => {
    for (const order of [1, 2]) {
      const request = { ...ALL, sort_target: target, sort_order: order };
      const all = store.range(range(request)).kvs;
      for (const limit of [1, 2, 7, 16, 17, 50]) {
        const { kvs, more } = store.range(range({ ...request, limit: BigInt(limit) }));
        expect(kvs).toEqual(all.slice(0, limit));
        expect(more).toBe(true);
      }
    }
  });
});
