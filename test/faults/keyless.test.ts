import { expect, test } from 'vitest';
import { judge } from './checker.ts';
import type { Event, QueueEvent } from './history.ts';
import { holdingByKey, isLostByKeyless, keylessIn } from './keyless.ts';

const history: Event[] = [
  { at: 10, who: 'etcdctl', kind: 'held', token: '1', uuid: 'go:a' },
  { at: 60, who: 'manager', kind: 'held', token: '5' },
  { at: 80, who: 'etcdctl', kind: 'released', token: '1' },
  { at: 90, who: 'manager', kind: 'released', token: '5' },
];

const removed = (at: number, value = 'go:a'): QueueEvent => ({
  at,
  index: 4,
  lock: 'x',
  rank: 1n,
  action: 'gone',
  value,
});

test('a hold of etcdctl ends when its key is removed, although etcdctl does not notice that', () => {
  expect(judge(history).overlaps).toHaveLength(1);
  expect(judge(holdingByKey(history, [removed(50)])).overlaps).toEqual([]);
  expect(keylessIn(history, [removed(50)])).toMatchObject([{ who: 'etcdctl', token: '1' }]);
});

test('a hold of etcdctl that begins after the removal of its key does not count as a hold', () => {
  const late = history.map((event) => (event.at === 10 ? { ...event, at: 70 } : event));
  expect(judge(holdingByKey(late, [removed(50)])).overlaps).toEqual([]);
});

test.each([
  ['etcdctl 1', true],
  ['manager 1', true],
  ['manager 2', false],
  ['manager 3', false],
])('whether the lost update "%s" is the fault of a hold without its key: %s', (addition, expected) => {
  const later: Event[] = [
    ...history,
    { at: 100, who: 'manager', kind: 'held', token: '6' },
    { at: 110, who: 'manager', kind: 'released', token: '6' },
  ];
  const keyless = keylessIn(later, [removed(50)]);
  expect(isLostByKeyless(addition, later, keyless)).toBe(expected);
  expect(isLostByKeyless(addition, later, [])).toBe(false);
});

test('a hold of etcdctl whose key is there overlaps with another hold', () => {
  for (const queue of [[], [removed(100)], [removed(50, 'go:b')]]) {
    expect(judge(holdingByKey(history, queue)).overlaps).toHaveLength(1);
    expect(keylessIn(history, queue)).toEqual([]);
  }
});
