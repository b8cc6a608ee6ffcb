import { expect, test } from 'vitest';
import { isOwn, registerOwn, unregisterOwn } from '../../../src/recipe/entries/own-entries.ts';

const registry = () =>
  (globalThis as unknown as Record<symbol, Map<string, number>>)[Symbol.for('etcd-v2-lock.own')] as Map<string, number>;

const entry = (path: string, value = 'value') => ({ path, value });

test('an entry is own until it is unregistered, by the path of its queue and its value', () => {
  registerOwn(entry('/a'), 30);
  expect(isOwn(entry('/a'))).toBe(true);
  expect(isOwn(entry('/b'))).toBe(false);
  expect(isOwn(entry('/a', 'other'))).toBe(false);
  unregisterOwn(entry('/a'));
  expect(isOwn(entry('/a'))).toBe(false);
});

test('entries that were never unregistered are forgotten some time after they have expired', () => {
  registerOwn(entry('/permanent'), null);
  registerOwn(entry('/long'), 600);
  const expired = Array.from({ length: 5000 }, (_, i) => entry(`/expired/${i}`));
  for (const one of expired) registerOwn(one, 0);
  expect(expired.filter(isOwn)).toEqual([]);
  expect(registry().size).toBeLessThan(2000);
  for (const path of ['/permanent', '/long']) {
    expect(isOwn(entry(path))).toBe(true);
    unregisterOwn(entry(path));
  }
});
