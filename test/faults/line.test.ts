import { expect, test } from 'vitest';
import type { QueueEvent } from './history.ts';
import { headsIn, ownersIn } from './line.ts';

let index = 0;
function change(at: number, action: QueueEvent['action'], rank: bigint, value: string): QueueEvent {
  index += 1;
  return { at, index, lock: 'x', rank, action, value };
}

test('headsIn() derives the heads of the queue from appends and removals', () => {
  const queue = [
    change(1, 'queued', 5n, 'a'),
    change(2, 'queued', 6n, 'b'),
    change(3, 'queued', 7n, 'c'),
    change(4, 'removed', 6n, 'b'),
    change(5, 'expired', 5n, 'a'),
    change(6, 'removed', 7n, 'c'),
    change(9, 'queued', 12n, 'd'),
  ];
  expect(headsIn(queue)).toEqual([
    { rank: 5n, value: 'a', queued: 1, from: 1, to: 5, removed: 5, ahead: [], before: undefined },
    {
      rank: 7n,
      value: 'c',
      queued: 3,
      from: 5,
      to: 6,
      removed: 6,
      ahead: [],
      before: { value: 'a', mayHaveExpired: true },
    },
    {
      rank: 12n,
      value: 'd',
      queued: 9,
      from: 9,
      to: Number.POSITIVE_INFINITY,
      removed: Number.POSITIVE_INFINITY,
      ahead: [],
      before: undefined,
    },
  ]);
});

test('headsIn() has as many heads at a time as the limit of the first entries says, and one before and after them', () => {
  const [a, b, c, d] = ['limit:2:a', 'limit:2:b', 'limit:2:c', 'd'];
  const queue = [
    change(1, 'queued', 1n, a),
    change(2, 'queued', 2n, b),
    change(3, 'queued', 3n, c),
    change(4, 'queued', 4n, d),
    change(5, 'removed', 2n, b),
    change(6, 'removed', 1n, a),
    change(7, 'expired', 3n, c),
    change(8, 'removed', 4n, d),
  ];
  expect(headsIn(queue)).toMatchObject([
    { value: b, from: 2, to: 5, before: undefined },
    { value: a, from: 1, to: 6, before: undefined },
    { value: c, from: 5, to: 7, ahead: [a], before: { value: b, mayHaveExpired: false } },
    { value: d, from: 7, to: 8, before: { value: c, mayHaveExpired: true } },
  ]);
});

test('headsIn() orders events by etcd index, even if they were seen in another order', () => {
  const queued = change(5, 'queued', 5n, 'a');
  const second = change(2, 'queued', 6n, 'b');
  const removed = change(7, 'removed', 5n, 'a');
  expect(headsIn([removed, second, queued])).toMatchObject([
    { rank: 5n, from: 5, to: 7 },
    { rank: 6n, from: 7, before: { value: 'a', mayHaveExpired: false } },
  ]);
});

test('ownersIn() finds the owner of an entry by the reported uuid or by the identity in the entry', () => {
  const ownerOf = ownersIn([{ at: 0, who: 'steady-lock-1', kind: 'asks', uuid: 'abc' }]);
  const values = ['abc', 'id:rough-manager-7:def', 'limit:2:id:pool-manager-9:def', 'def'];
  expect(values.map(ownerOf)).toEqual(['steady-lock-1', 'rough-manager-7', 'pool-manager-9', undefined]);
});
