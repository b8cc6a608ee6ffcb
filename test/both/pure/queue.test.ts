import { expect, test } from 'vitest';
import { merged } from '../../../src/both/queue.ts';
import type { Entry, Queue } from '../../../src/recipe/store.ts';

/** A queue of entries with these values, in this order. */
const queue = (store: string, values: readonly string[]): Queue => {
  const entries: Entry[] = values.map((value, i) => ({ key: `${value} on ${store}`, value, rank: BigInt(i), ttl: 30 }));
  return { entries, inOrder: () => entries };
};

const keysOf = (v2: string[], v3: string[]): string[] =>
  merged(queue('v2', v2), queue('v3', v3))
    .inOrder()
    .map(({ key }) => key);

test.each([
  [
    'those on v3 come first, and those on both are named as on v2',
    ['a', 'b'],
    ['x', 'a'],
    ['x on v3', 'a on v2', 'b on v2'],
  ],
  ['an entry on v3 alone keeps its position', ['a'], ['a', 'x'], ['a on v2', 'x on v3']],
  [
    'readers that have entered v3 together are in the order of v2',
    ['shared:1', 'shared:2', 'shared:3'],
    ['shared:3', 'shared:1', 'shared:2'],
    ['shared:1 on v2', 'shared:2 on v2', 'shared:3 on v2'],
  ],
  [
    'readers with a writer between them are in the order of v3',
    ['shared:1', 'shared:2'],
    ['shared:2', 'w', 'shared:1'],
    ['shared:2 on v2', 'w on v3', 'shared:1 on v2'],
  ],
  ['entries without a value have no twins', [''], [''], [' on v3', ' on v2']],
])('in the merged queue, %s', (_, v2, v3, keys) => {
  expect(keysOf(v2, v3)).toEqual(keys);
});
