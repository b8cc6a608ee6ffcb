import fc from 'fast-check';
import { expect, test } from 'vitest';
import { apply, diff } from '../../src/cli/queues/changes.ts';
import type { KeyEvent, Node } from '../../src/v2/keys-api.ts';
import { type ParsedEntry, parsedEntriesAmong } from '../../src/v2/locks/survey.ts';

const PLACE = { name: 'x', path: '/_locks/x' };

const file = (number: number, value: string, key = `/_locks/x/${String(number).padStart(20, '0')}`): Node => ({
  key,
  value,
  dir: false,
  ttl: 30,
  createdIndex: number,
  modifiedIndex: number,
  nodes: [],
});

const queue = (...values: readonly string[]): ParsedEntry[] =>
  parsedEntriesAmong(
    'x',
    values.map((value, rank) => file(rank + 1, value)),
  );

const event = (action: string, node: Node, prevNode?: Node): KeyEvent => ({
  action,
  node,
  ...(prevNode ? { prevNode } : {}),
  index: 100,
  clusterId: 'c',
  sentAt: 0,
});

/** What is told of an event, and the values in the queue after it. */
function told(before: ParsedEntry[], happened: KeyEvent): [string[], string[]] {
  const { entries, happenings } = apply(PLACE, before, happened);
  return [happenings.map(({ what, entry }) => `${what} ${entry.value}`), entries.map(({ value }) => value)];
}

test.each<[string, ParsedEntry[], KeyEvent, string[], string[]]>([
  ['the first to come', [], event('create', file(1, 'a')), ['queued a', 'acquired a'], ['a']],
  ['one who has to wait', queue('a'), event('create', file(2, 'b')), ['queued b'], ['a', 'b']],
  [
    'one who shares with the holder',
    queue('shared:a'),
    event('create', file(2, 'shared:b')),
    ['queued shared:b', 'acquired shared:b'],
    ['shared:a', 'shared:b'],
  ],
  ['a release', queue('a', 'b', 'c'), event('delete', file(1, '')), ['released a', 'acquired b'], ['b', 'c']],
  [
    'a release by compare-and-delete',
    queue('a', 'b'),
    event('compareAndDelete', file(1, '')),
    ['released a', 'acquired b'],
    ['b'],
  ],
  [
    'a release to all who share',
    queue('a', 'shared:b', 'shared:c', 'd'),
    event('delete', file(1, '')),
    ['released a', 'acquired shared:b', 'acquired shared:c'],
    ['shared:b', 'shared:c', 'd'],
  ],
  [
    'the end of one of those who share',
    queue('shared:a', 'shared:b', 'c'),
    event('delete', file(1, '')),
    ['released shared:a'],
    ['shared:b', 'c'],
  ],
  ['a waiter who leaves', queue('a', 'b', 'c'), event('delete', file(2, '')), ['left b'], ['a', 'c']],
  [
    'one who leaves and stood between those who share',
    queue('shared:a', 'b', 'shared:c'),
    event('delete', file(2, '')),
    ['left b', 'acquired shared:c'],
    ['shared:a', 'shared:c'],
  ],
  ['an expiry', queue('a', 'b'), event('expire', file(1, '')), ['expired a', 'acquired b'], ['b']],
  ['an expiry of a waiter', queue('a', 'b'), event('expire', file(2, '')), ['expired b'], ['a']],
  [
    'a key made again under its old number',
    queue('a', 'b').slice(1),
    event('set', file(1, 'a')),
    ['re-created a', 'acquired a'],
    ['a', 'b'],
  ],
  ['python-etcd’s renewal', queue('a', 'b'), event('set', file(1, 'a'), file(1, 'a')), [], ['a', 'b']],
  ['a renewal with the value', queue('a'), event('compareAndSwap', file(1, 'a'), file(1, 'a')), [], ['a']],
  ['another value', queue('a', 'b'), event('update', file(2, 'c'), file(2, 'b')), ['changed c'], ['a', 'c']],
  ['a wiped value', queue('a', 'b'), event('set', file(1, ''), file(1, 'a')), ['wiped '], ['', 'b']],
  [
    'the end of the whole directory',
    queue('a', 'b'),
    event('delete', { ...file(9, '', '/_locks/x'), dir: true }),
    ['released a', 'left b'],
    [],
  ],
  [
    'the end of a directory around it',
    queue('a', 'b'),
    event('expire', { ...file(9, '', '/_locks'), dir: true }),
    ['expired a', 'expired b'],
    [],
  ],
  ['an entry of a lock inside it', queue('a'), event('create', file(2, 'b', '/_locks/x/y/2')), [], ['a']],
  ['the end of such a one', queue('a'), event('delete', file(1, '', '/_locks/x/y/1')), [], ['a']],
  ['a directory of such a lock', queue('a'), event('create', { ...file(2, '', '/_locks/x/2'), dir: true }), [], ['a']],
  ['a file that no number names', queue('a'), event('set', file(2, 'b', '/_locks/x/foo')), [], ['a']],
])('%s is told as what it is', (_, before, happened, lines, after) => {
  expect(told(before, happened)).toEqual([lines, after]);
});

test('a renewal moves on the TTL that is told later', () => {
  const { entries } = apply(PLACE, queue('a'), event('set', { ...file(1, 'a'), ttl: 99 }, file(1, 'a')));
  expect(entries).toMatchObject([{ value: 'a', ttl: 99 }]);
});

test('between two listings each entry that is not in both is told of once, and each new holder', () => {
  const entry = fc.record({ number: fc.integer({ min: 1, max: 9 }), shared: fc.boolean() });
  const listing = fc.uniqueArray(entry, { selector: ({ number }) => number }).map((entries) =>
    parsedEntriesAmong(
      'x',
      entries.map(({ number, shared }) => file(number, shared ? 'shared:v' : 'v')),
    ),
  );
  fc.assert(
    fc.property(listing, listing, (before, after) => {
      const happenings = diff(before, after);
      const keys = (what: string) => happenings.filter((one) => one.what === what).map(({ entry: { key } }) => key);
      const only = (some: ParsedEntry[], others: ParsedEntry[]) =>
        some.map(({ key }) => key).filter((key) => !others.some((other) => other.key === key));
      expect(keys('gone')).toEqual(only(before, after));
      expect(keys('queued')).toEqual(only(after, before));
      // What was told so far, put together, is what there is.
      const shown = new Set([...before.map(({ key }) => key), ...keys('queued')]);
      for (const key of keys('gone')) shown.delete(key);
      expect([...shown].sort()).toEqual(after.map(({ key }) => key));
      expect(happenings.length).toBe(new Set(happenings.map(({ what, entry }) => `${what} ${entry.key}`)).size);
      expect(diff(after, after)).toEqual([]);
    }),
  );
});
