import { expect, test } from 'vitest';
import { combined } from '../../../src/both/own-entry.ts';
import type { OwnEntry } from '../../../src/recipe/store.ts';

const entry = (key: string, sentAt: number, granted: number | null): OwnEntry => ({
  key,
  value: 'a',
  rank: 1n,
  clusterId: 'c',
  sentAt,
  granted,
});

test.each<
  [what: string, v2: [number, number | null], v3: [number, number | null] | undefined, [number, number | null]]
>([
  ['the one on v2 while there is no other', [1000, 5], undefined, [1000, 5]],
  ['the older one on v3', [1000, 5], [500, 5], [500, 5]],
  ['the older one on v2', [1000, 5], [1500, 5], [1000, 5]],
  ['the one on v2 if v3 has made the TTL longer', [1000, 1], [900, 2], [1000, 1]],
  ['the one that expires', [1000, null], [1000, 5], [1000, 5]],
  ['neither', [1000, null], [1000, null], [1000, null]],
])('the own entry in both queues is kept as long as %s', (_, v2, v3, [sentAt, granted]) => {
  const own = combined(entry('on v2', ...v2), v3 && entry('on v3', ...v3));
  expect(own).toMatchObject({ key: 'on v2', sentAt, granted });
});
