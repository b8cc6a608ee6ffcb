import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { claimOf } from '../../../src/recipe/entries/entry-value.ts';
import { holdersAmong, obstacleOf, wouldWait } from '../../../src/recipe/rules.ts';
import type { Entry } from '../../../src/recipe/store.ts';

const LIMIT = 3;

const entryOf = (prefix: string, index: number): Entry => ({
  key: `/k/${index}`,
  value: `${prefix}u${index}`,
  rank: BigInt(index),
  ttl: undefined,
});

const queueOf = (prefix: fc.Arbitrary<string>) =>
  fc
    .array(prefix, { minLength: 1, maxLength: 12 })
    .map((prefixes) => prefixes.map((one, index) => entryOf(one, index + 1)));

/** A queue in order, and its entries in any order. */
const shuffled = (queue: fc.Arbitrary<Entry[]>) =>
  queue.chain((inOrder) =>
    fc.record({
      inOrder: fc.constant(inOrder),
      entries: fc.shuffledSubarray(inOrder, { minLength: inOrder.length }),
    }),
  );

const mixed = shuffled(queueOf(fc.constantFrom('', 'shared:', `limit:${LIMIT}:`, `limit:${LIMIT}:`)));
const limited = shuffled(queueOf(fc.constant(`limit:${LIMIT}:`)));

const holdersIn = (inOrder: readonly Entry[]): string[] =>
  holdersAmong(inOrder.map((entry) => ({ ...entry, ...claimOf(entry.value) }))).map(({ key }) => key);

const without = (entries: readonly Entry[], gone: readonly Entry[]): Entry[] =>
  entries.filter((entry) => !gone.includes(entry));

describe('the rules, for any queue', () => {
  test('let exactly those entries hold the lock that are shown as holders', () => {
    fc.assert(
      fc.property(mixed, ({ inOrder, entries }) => {
        const held = inOrder.filter((own) => !obstacleOf(entries, own)).map(({ key }) => key);
        expect(held).toEqual(holdersIn(inOrder));
      }),
    );
  });

  test('never wake a waiter too late: it cannot hold the lock before as many entries are gone as its obstacle says', () => {
    fc.assert(
      fc.property(mixed, fc.infiniteStream(fc.nat()), ({ entries }, picks) => {
        for (const own of entries) {
          const obstacle = obstacleOf(entries, own);
          if (!obstacle) continue;
          const { among, count, nearest } = obstacle;
          expect(among).toContain(nearest);
          const gone: Entry[] = [];
          while (gone.length < count - 1) {
            const left = without(among, gone);
            gone.push(left[picks.next().value % left.length] as Entry);
          }
          expect(obstacleOf(without(entries, gone), own)).toBeDefined();
        }
      }),
    );
  });

  test('let an entry behind others with its limit hold the lock once as many are gone, whichever they are', () => {
    fc.assert(
      fc.property(limited, ({ entries }) => {
        for (const own of entries) {
          const obstacle = obstacleOf(entries, own);
          if (!obstacle) continue;
          const { among, count } = obstacle;
          for (const gone of [among.slice(0, count), among.slice(-count)])
            expect(obstacleOf(without(entries, gone), own)).toBeUndefined();
        }
      }),
    );
  });

  test('say of a new entry whether it would wait', () => {
    fc.assert(
      fc.property(mixed, fc.constantFrom('', 'shared:', `limit:${LIMIT}:`), ({ inOrder, entries }, prefix) => {
        const added = entryOf(prefix, inOrder.length + 1);
        const isHolder = holdersIn([...inOrder, added]).includes(added.key);
        expect(wouldWait(entries, claimOf(added.value))).toBe(!isHolder);
      }),
    );
  });
});
