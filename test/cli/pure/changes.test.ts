import fc from 'fast-check';
import { expect, test } from 'vitest';
import { diff, eventsOf } from '../../../src/cli/queues/changes.ts';
import type { ParsedEntry } from '../../../src/recipe/survey.ts';
import type { KeyEvent, Node } from '../../../src/v2/keys-api.ts';
import { parsedEntriesAmong } from '../../../src/v2/locks/survey.ts';
import { changeBy } from '../../../src/v2/locks/surveyor.ts';

const LOCK = { name: 'x', path: '/_locks/x', ignored: [] };

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

/** The entries after a change in etcd, and its events. */
function apply(before: ParsedEntry[], event: KeyEvent) {
  const change = changeBy(event, { queue: { ...LOCK, entries: before }, index: 99, clusterId: 'c' });
  return { entries: change.entries, events: eventsOf(before, change) };
}

/** Returns the reported events of a change, and the values in the queue after it. */
function resultOf(before: ParsedEntry[], change: KeyEvent): [string[], string[]] {
  const { entries, events } = apply(before, change);
  return [events.map(({ kind, entry }) => `${kind} ${entry.value}`), entries.map(({ value }) => value)];
}

test.each<[string, ParsedEntry[], KeyEvent, string[], string[]]>([
  ['the first entry', [], event('create', file(1, 'a')), ['queued a', 'acquired a'], ['a']],
  ['an entry that waits', queue('a'), event('create', file(2, 'b')), ['queued b'], ['a', 'b']],
  [
    'an entry that shares with the holder',
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
    'a release followed by several shared entries',
    queue('a', 'shared:b', 'shared:c', 'd'),
    event('delete', file(1, '')),
    ['released a', 'acquired shared:b', 'acquired shared:c'],
    ['shared:b', 'shared:c', 'd'],
  ],
  [
    'a release by one of several shared holders',
    queue('shared:a', 'shared:b', 'c'),
    event('delete', file(1, '')),
    ['released shared:a'],
    ['shared:b', 'c'],
  ],
  ['a waiter that leaves', queue('a', 'b', 'c'), event('delete', file(2, '')), ['left b'], ['a', 'c']],
  [
    'a waiter that leaves between two shared entries',
    queue('shared:a', 'b', 'shared:c'),
    event('delete', file(2, '')),
    ['left b', 'acquired shared:c'],
    ['shared:a', 'shared:c'],
  ],
  ['an expired holder', queue('a', 'b'), event('expire', file(1, '')), ['expired a', 'acquired b'], ['b']],
  ['an expired waiter', queue('a', 'b'), event('expire', file(2, '')), ['expired b'], ['a']],
  [
    'a key created again under its old number',
    queue('a', 'b').slice(1),
    event('set', file(1, 'a')),
    ['re-created a', 'acquired a'],
    ['a', 'b'],
  ],
  ['a renewal by python-etcd', queue('a', 'b'), event('set', file(1, 'a'), file(1, 'a')), [], ['a', 'b']],
  ['a renewal by compare-and-swap', queue('a'), event('compareAndSwap', file(1, 'a'), file(1, 'a')), [], ['a']],
  ['a changed value', queue('a', 'b'), event('update', file(2, 'c'), file(2, 'b')), ['changed c'], ['a', 'c']],
  ['a wiped value', queue('a', 'b'), event('set', file(1, ''), file(1, 'a')), ['wiped '], ['', 'b']],
  [
    'a removal of the whole directory',
    queue('a', 'b'),
    event('delete', { ...file(9, '', '/_locks/x'), dir: true }),
    ['released a', 'left b'],
    [],
  ],
  [
    'an expired parent directory',
    queue('a', 'b'),
    event('expire', { ...file(9, '', '/_locks'), dir: true }),
    ['expired a', 'expired b'],
    [],
  ],
  ['a new entry of a nested lock', queue('a'), event('create', file(2, 'b', '/_locks/x/y/2')), [], ['a']],
  ['a removed entry of a nested lock', queue('a'), event('delete', file(1, '', '/_locks/x/y/1')), [], ['a']],
  [
    'a new directory of a nested lock',
    queue('a'),
    event('create', { ...file(2, '', '/_locks/x/2'), dir: true }),
    [],
    ['a'],
  ],
  ['a file whose name is not a number', queue('a'), event('set', file(2, 'b', '/_locks/x/foo')), [], ['a']],
])('%s is reported correctly', (_, before, change, lines, after) => {
  expect(resultOf(before, change)).toEqual([lines, after]);
});

test('a renewal updates the TTL of the entry', () => {
  const { entries } = apply(queue('a'), event('set', { ...file(1, 'a'), ttl: 99 }, file(1, 'a')));
  expect(entries).toMatchObject([{ value: 'a', ttl: 99 }]);
});

test('diff reports a later entry under the same key as another entry', () => {
  const [before = expect.unreachable()] = queue('a');
  const after: ParsedEntry = { ...before, value: 'b', uuid: 'b', rank: 7n };
  const events = diff([before], [after]).map(({ kind, entry }) => `${kind} ${entry.value}`);
  expect(events).toEqual(['gone a', 'queued b', 'acquired b']);
});

test('diff reports each added entry, each removed entry and each new holder once', () => {
  const entry = fc.record({ number: fc.integer({ min: 1, max: 9 }), shared: fc.boolean() });
  const listing = fc.uniqueArray(entry, { selector: ({ number }) => number }).map((entries) =>
    parsedEntriesAmong(
      'x',
      entries.map(({ number, shared }) => file(number, shared ? 'shared:v' : 'v')),
    ),
  );
  fc.assert(
    fc.property(listing, listing, (before, after) => {
      const events = diff(before, after);
      const keys = (kind: string) => events.filter((event) => event.kind === kind).map(({ entry: { key } }) => key);
      const only = (some: ParsedEntry[], others: ParsedEntry[]) =>
        some.map(({ key }) => key).filter((key) => !others.some((other) => other.key === key));
      expect(keys('gone')).toEqual(only(before, after));
      expect(keys('queued')).toEqual(only(after, before));
      // The reported events lead from the old queue to the new one.
      const shown = new Set([...before.map(({ key }) => key), ...keys('queued')]);
      for (const key of keys('gone')) shown.delete(key);
      expect([...shown].sort()).toEqual(after.map(({ key }) => key));
      expect(events.length).toBe(new Set(events.map(({ kind, entry }) => `${kind} ${entry.key}`)).size);
      expect(diff(after, after)).toEqual([]);
    }),
  );
});
