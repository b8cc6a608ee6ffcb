import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isShared } from '../../../../src/recipe/entries/entry-value.ts';
import type { Node } from '../../../../src/v2/keys-api.ts';
import { entriesAmong, type V2Entry } from '../../../../src/v2/locks/reading.ts';
import { obstacleIn } from '../../../../src/v2/locks/standing.ts';

const DIR = '/_locks/x';

type Decision = { readonly state: 'held' } | { readonly state: 'wait'; readonly on: V2Entry };

function decide(entries: readonly V2Entry[], ownKey: string): Decision {
  const own = entries.find(({ key }) => key === ownKey) ?? expect.unreachable();
  const on = obstacleIn(entries, own)?.nearest;
  return on ? { state: 'wait', on } : { state: 'held' };
}

const file = (name: string, value = 'v'): Node => ({
  key: `${DIR}/${name}`,
  value,
  dir: false,
  createdIndex: 1,
  modifiedIndex: 1,
  nodes: [],
});
const directory = (name: string): Node => ({ ...file(name), dir: true, nodes: [file(`${name}/${wide(1n)}`)] });
const wide = (n: bigint): string => n.toString().padStart(20, '0');

const listing = (nodes: Node[]): readonly V2Entry[] => entriesAmong(nodes);

const ours = fc.uniqueArray(fc.bigInt({ min: 0n, max: 10n ** 20n - 1n }), { minLength: 1, maxLength: 30 });
/** Other content of the directory: numbers without padding or with too much of it, other names, directories. */
const foreign = fc.array(
  fc.oneof(
    fc.bigInt({ min: 0n, max: 10n ** 24n }).map((n) => file(n.toString())),
    fc.string({ minLength: 1, maxLength: 8 }).map((name) => file(name.replaceAll('/', '_'))),
    fc.bigInt({ min: 0n, max: 10n ** 20n - 1n }).map((n) => directory(wide(n))),
  ),
  { maxLength: 15 },
);

/** Queues of entries whose owners follow the rule (`own`) and other keys, in random order. */
const queues = fc.tuple(ours, foreign).chain(([numbers, others]) => {
  const own = numbers.map((n) => file(wide(n)));
  const names = new Set(own.map(({ key }) => key));
  const nodes = [...own, ...others.filter(({ key }) => !names.has(key))];
  return fc.shuffledSubarray(nodes, { minLength: nodes.length }).map((shuffled) => ({
    entries: listing(shuffled),
    own: own.map(({ key }) => key),
  }));
});

const decideAll = (entries: readonly V2Entry[], own: readonly string[]): Map<string, Decision> =>
  new Map(own.map((key) => [key, decide(entries, key)]));

test('an entry that has expired and is not removed yet has no time left, although etcd leaves out its TTL', () => {
  const [expired] = listing([{ ...file(wide(4n)), expiration: '2026-01-01T00:00:00Z' }]);
  const [permanent] = listing([file(wide(4n))]);
  expect([expired?.ttl, permanent?.ttl]).toEqual([0, undefined]);
});

describe('the exclusive rule, for any set of entries, foreign keys and directories', () => {
  test('gives the lock to at most one contender', () => {
    fc.assert(
      fc.property(queues, ({ entries, own }) => {
        const held = [...decideAll(entries, own).values()].filter(({ state }) => state === 'held');
        expect(held.length).toBeLessThanOrEqual(1);
      }),
    );
  });

  test('gives the lock to the lowest entry if there are no other keys', () => {
    fc.assert(
      fc.property(ours, (numbers) => {
        const entries = listing(numbers.map((n) => file(wide(n))));
        const decisions = decideAll(
          entries,
          entries.map(({ key }) => key),
        );
        const held = [...decisions].filter(([, { state }]) => state === 'held').map(([key]) => key);
        const [lowest = 0n] = numbers.toSorted((a, b) => (a < b ? -1 : 1));
        expect(held).toEqual([`${DIR}/${wide(lowest)}`]);
      }),
    );
  });

  test('makes each waiter wait for an entry of the queue other than its own', () => {
    fc.assert(
      fc.property(queues, ({ entries, own }) => {
        for (const [key, decision] of decideAll(entries, own)) {
          if (decision.state !== 'wait') continue;
          expect(entries).toContain(decision.on);
          expect(decision.on.key).not.toBe(key);
        }
      }),
    );
  });

  test('never makes contenders wait for each other in a circle', () => {
    fc.assert(
      fc.property(queues, ({ entries, own }) => {
        const decisions = decideAll(entries, own);
        for (const start of own) {
          const seen = new Set<string>();
          for (let key: string | undefined = start; key !== undefined; ) {
            expect(seen).not.toContain(key);
            seen.add(key);
            const decision = decisions.get(key);
            key = decision?.state === 'wait' ? decision.on.key : undefined;
          }
        }
      }),
    );
  });

  test('agrees with python-etcd whenever it says held: no entry is earlier in text order', () => {
    fc.assert(
      fc.property(queues, ({ entries, own }) => {
        const first = entries.map(({ key }) => key).sort()[0];
        for (const [key, { state }] of decideAll(entries, own)) if (state === 'held') expect(key).toBe(first);
      }),
    );
  });

  test('makes each waiter wait for the nearest entry before its own', () => {
    const entries = listing([file(wide(7n)), file(wide(3n)), file(wide(5n))]);
    expect(decide(entries, `${DIR}/${wide(7n)}`)).toMatchObject({ state: 'wait', on: { rank: 5n } });
    expect(decide(entries, `${DIR}/${wide(5n)}`)).toMatchObject({ state: 'wait', on: { rank: 3n } });
    expect(decide(entries, `${DIR}/${wide(3n)}`)).toEqual({ state: 'held' });
  });

  test('makes an entry wait for a lower number without padding (etcd before 2.2), even if that is last in text order', () => {
    const entries = listing([file('9'), file(wide(50n))]);
    expect(decide(entries, `${DIR}/${wide(50n)}`)).toMatchObject({ state: 'wait', on: { key: `${DIR}/9` } });
  });

  test('makes an entry wait for a higher number that is first in text order, because python-etcd takes that for the holder', () => {
    const entries = listing([file('000000000000000000000099'), file(wide(50n))]);
    expect(decide(entries, `${DIR}/${wide(50n)}`)).toMatchObject({ state: 'wait', on: { rank: 99n } });
  });
});

/** Queues of readers and writers who follow the rules (`own`) and other keys. */
const mixed = queues.chain(({ entries, own }) =>
  fc.array(fc.boolean(), { minLength: entries.length, maxLength: entries.length }).map((readers) => ({
    entries: entries.map((entry, i) => ({ ...entry, value: `${readers[i] ? 'shared:' : ''}u${i}` })),
    own,
  })),
);

const decideMixed = (entries: readonly V2Entry[], own: readonly string[]) =>
  entries.filter(({ key }) => own.includes(key)).map((entry) => ({ entry, decision: decide(entries, entry.key) }));

describe('the rules for readers and writers, for any set of entries', () => {
  test('let no other contender hold together with a writer', () => {
    fc.assert(
      fc.property(mixed, ({ entries, own }) => {
        const held = decideMixed(entries, own).filter(({ decision }) => decision.state === 'held');
        if (held.some(({ entry }) => !isShared(entry.value))) expect(held).toHaveLength(1);
      }),
    );
  });

  test('let no contender overtake an earlier writer', () => {
    fc.assert(
      fc.property(mixed, ({ entries, own }) => {
        for (const { entry, decision } of decideMixed(entries, own)) {
          const before = entries.filter((other) => other.rank < entry.rank && !isShared(other.value));
          if (before.length > 0) expect(decision.state).toBe('wait');
        }
      }),
    );
  });

  test('make each waiter wait for an entry that blocks it, and never in a circle', () => {
    fc.assert(
      fc.property(mixed, ({ entries, own }) => {
        const decisions = new Map(decideMixed(entries, own).map(({ entry, decision }) => [entry.key, decision]));
        for (const [start, decision] of decisions) {
          const isReader = isShared(entries.find(({ key }) => key === start)?.value ?? '');
          if (decision.state === 'wait' && isReader) expect(isShared(decision.on.value)).toBe(false);
          const seen = new Set<string>();
          for (let key: string | undefined = start; key !== undefined; ) {
            expect(seen).not.toContain(key);
            seen.add(key);
            const next: Decision | undefined = decisions.get(key);
            key = next?.state === 'wait' ? next.on.key : undefined;
          }
        }
      }),
    );
  });

  test('let all readers without an earlier writer hold together', () => {
    const entries = listing([
      file(wide(1n), 'shared:a'),
      file(wide(2n), 'shared:b'),
      file(wide(3n), 'c'),
      file(wide(4n), 'shared:d'),
    ]);
    const states = decideMixed(
      entries,
      entries.map(({ key }) => key),
    ).map(({ decision }) => decision);
    expect(states).toMatchObject([
      { state: 'held' },
      { state: 'held' },
      { state: 'wait', on: { rank: 2n } },
      { state: 'wait', on: { rank: 3n } },
    ]);
  });
});

describe('a queue', () => {
  test('contains only files that are direct children with a number as name', () => {
    const entries = listing([directory('5'), file('notes'), file(wide(2n), 'uuid-2'), file('-1'), file('1e3')]);
    expect(entries).toEqual([
      { key: `${DIR}/${wide(2n)}`, value: 'uuid-2', rank: 2n, ttl: undefined, modifiedIndex: 1, createdIndex: 1 },
    ]);
  });

  test('is empty if the directory has no entries', () => {
    expect(listing([])).toEqual([]);
  });
});
