import { expect, test } from 'vitest';
import { judgeMove } from '../../../src/cli/doctor/moving/judge.ts';
import type { Client, Kinds } from '../../../src/cli/doctor/moving/kinds.ts';
import { bridgedValue } from '../../../src/recipe/entries/bridged-value.ts';
import { formatValue } from '../../../src/recipe/entries/entry-value.ts';
import { freshUuid } from '../../../src/recipe/entries/uuid.ts';
import { type Entered, MovingStores } from '../../support/moving-stores.ts';

/** A client takes the lock from `enters` on, and leaves when the returned function is called. */
type Enters = (stores: MovingStores, value: string, name?: string) => () => void;

const onV2: Enters = (stores, value, name) => stores.enter('v2', value, name).leave;
const onV3: Enters = (stores, value, name) => stores.enter('v3', value, name).leave;
const onBoth: Enters = (stores, value, name) => {
  const entries = [stores.enter('v2', value, name), stores.enter('v3', value, name)];
  return () => {
    for (const entry of entries.toReversed()) entry.leave();
  };
};

const CLAIM = { mode: 'exclusive', limit: undefined } as const;
const labelled = (label: string, identity?: string): string => formatValue({ ...CLAIM, label, identity }, freshUuid());
/** The value of a process with the default label. */
const node = (pid = 1): string => labelled(`host:${pid}`);
const NODE = 'host:1';
/** The port at its end does not make it the label of one process. */
const CUSTOM = 'http://10.0.0.7:8080';
/** python-etcd makes a uuid for each of its locks, and names itself in no other way. */
const PYTHON = 'd41d8cd98f00b204e9800998ecf8427e';

/** Takes the lock again and again, each time for `ms` milliseconds. */
function work(stores: MovingStores, enters: Enters, value: () => string, ms = 50): void {
  for (let cycle = 0; cycle < 4; cycle += 1) {
    const leave = enters(stores, value());
    stores.pass(ms);
    leave();
  }
}

/** Holds on v2 alone, and gives up. */
function onV2For(stores: MovingStores, value: string, ms: number): void {
  const leave = onV2(stores, value);
  stores.pass(ms);
  leave();
}

/** Lets seconds pass in which an entry is renewed. */
function renew(stores: MovingStores, entry: Entered, seconds: number): void {
  for (let second = 0; second < seconds; second += 1) {
    stores.pass(1000);
    entry.renew();
  }
}

/** Which clients are seen as which kind. */
function named(kinds: Kinds): Partial<Record<keyof Kinds, string>> {
  const names = (clients: readonly Client[]) => clients.map(({ client }) => client).join(' ');
  const all = Object.entries(kinds).map(([kind, clients]) => [kind, names(clients)]);
  return Object.fromEntries(all.filter(([, clients]) => clients !== ''));
}

function judged(kinds: Kinds): string {
  const last = judgeMove(kinds).at(-1);
  return `${last?.level}: ${last?.text}`;
}

const NOBODY_ON_V2 = /^ok: no listed lock has had an entry on v2/;
const NOT_SAFE = /^warn: step 1.* Step 2 is not safe: some clients still use v2 alone$/;
const UNKNOWN = /^warn: it is not known whether step 2, from both to v3, is safe/;
const SAFE = /^warn: no client of kind v2 was seen: step 2, from both to v3, can begin/;
const BEGUN = /^warn: step 2, from both to v3, has begun/;
const UNKNOWN_BESIDE_V3 = /^warn: clients of kind v3 use the same locks as clients that may be of kind v2/;
const TORN = /^fail: clients of kind v2 and of kind v3 use the same locks/;

type Case = [what: string, happens: (stores: MovingStores) => void, kinds: ReturnType<typeof named>, step: RegExp];

test.each<Case>([
  // One process, alone.
  ['v2, idle', (stores) => stores.watch(), {}, NOBODY_ON_V2],
  [
    'v2, holding again and again',
    (stores) => {
      stores.watch();
      work(stores, onV2, node);
    },
    { v2: NODE },
    NOT_SAFE,
  ],
  [
    'v2, holding from the beginning to the end',
    (stores) => {
      const entry = stores.enter('v2', node());
      stores.watch();
      renew(stores, entry, 3);
    },
    { v2: NODE },
    NOT_SAFE,
  ],
  [
    'v2, holding from the beginning on for a second and more',
    (stores) => {
      const leave = onV2(stores, node());
      stores.watch();
      stores.pass(1500);
      leave();
    },
    { v2: NODE },
    NOT_SAFE,
  ],
  [
    'v2, holding without renewals',
    (stores) => {
      stores.watch();
      stores.enter('v2', node());
      stores.pass(5000);
    },
    { either: NODE },
    UNKNOWN,
  ],
  [
    'v2, holding for a moment only',
    (stores) => {
      stores.watch();
      work(stores, onV2, node, 5);
    },
    { either: NODE },
    UNKNOWN,
  ],
  [
    'v2, holding without renewals since the watch waits for others',
    (stores) => {
      stores.watch();
      stores.pass(6000);
      stores.enter('v2', node());
      stores.pass(2000);
    },
    { either: NODE },
    UNKNOWN,
  ],
  [
    'v2, killed while it holds',
    (stores) => {
      stores.watch();
      const entry = stores.enter('v2', node());
      stores.pass(3000);
      entry.expire();
    },
    { either: NODE },
    UNKNOWN,
  ],
  [
    'python on v2, holding again and again without renewals',
    (stores) => {
      stores.watch();
      work(stores, onV2, () => PYTHON, 2500);
    },
    { v2: PYTHON },
    NOT_SAFE,
  ],
  [
    'both, holding again and again',
    (stores) => {
      stores.watch();
      work(stores, onBoth, node);
    },
    { both: NODE },
    SAFE,
  ],
  [
    'both, holding from the beginning to the end',
    (stores) => {
      onBoth(stores, node());
      stores.watch();
      stores.pass(5000);
    },
    { both: NODE },
    SAFE,
  ],
  [
    'both, leaving v2 as the watch begins',
    (stores) => {
      const entry = stores.enter('v2', node());
      stores.watch();
      stores.pass(20);
      entry.leave();
    },
    { either: NODE },
    UNKNOWN,
  ],
  [
    'both, killed while it holds',
    (stores) => {
      const entries = [stores.enter('v2', node()), stores.enter('v3', node())];
      stores.watch();
      stores.pass(1000);
      for (const entry of entries) entry.expire();
    },
    { either: NODE },
    UNKNOWN,
  ],
  [
    'both, killed while it waits, whose entry becomes the first one',
    (stores) => {
      const leave = onBoth(stores, node(2));
      stores.enter('v2', node(1));
      stores.watch();
      stores.pass(100);
      leave();
      stores.pass(2000);
    },
    { both: 'host:2', either: NODE },
    UNKNOWN,
  ],
  [
    'both with an identity, killed while it waits, and evicted by its successor',
    (stores) => {
      const leave = onBoth(stores, node(2));
      const entry = stores.enter('v2', labelled(NODE, 'host-1'));
      stores.watch();
      const successor = labelled('host:3', 'host-1');
      const onV2 = stores.enter('v2', successor);
      leave();
      stores.pass(100);
      entry.leave();
      const onV3 = stores.enter('v3', successor);
      stores.pass(50);
      onV3.leave();
      onV2.leave();
    },
    { both: 'host:2 host-1' },
    SAFE,
  ],
  [
    'python at a bridge to both, waiting',
    (stores) => {
      stores.watch();
      stores.enter('v2', bridgedValue(PYTHON));
    },
    { both: PYTHON },
    SAFE,
  ],
  [
    'v3, holding again and again',
    (stores) => {
      stores.watch();
      work(stores, onV3, node);
    },
    { v3: NODE },
    NOBODY_ON_V2,
  ],
  [
    'v3, holding from the beginning to the end',
    (stores) => {
      onV3(stores, node());
      stores.watch();
      stores.pass(5000);
    },
    { v3: NODE },
    NOBODY_ON_V2,
  ],
  [
    'Go on v3, holding again and again',
    (stores) => {
      stores.watch();
      const leave = onV3(stores, '');
      stores.pass(50);
      leave();
    },
    { v3: '00000000000000000001' },
    NOBODY_ON_V2,
  ],
  [
    'both, killed before the watch: its entry on v3 expires later than that on v2',
    (stores) => {
      const entry = stores.enter('v3', node());
      stores.watch();
      stores.pass(1000);
      entry.expire();
    },
    {},
    NOBODY_ON_V2,
  ],
  // Several processes on one lock.
  [
    'v2 and v3, both at work',
    (stores) => {
      stores.watch();
      work(stores, onV2, node);
      work(stores, onV3, () => node(2));
    },
    { v2: NODE, v3: 'host:2' },
    TORN,
  ],
  [
    'v2, holding without renewals, and v3 at work',
    (stores) => {
      stores.watch();
      stores.enter('v2', PYTHON);
      work(stores, onV3, node, 1000);
    },
    { either: PYTHON, v3: NODE },
    UNKNOWN_BESIDE_V3,
  ],
  [
    'both, killed while it waits, and v3 at work',
    (stores) => {
      const leave = onBoth(stores, node(2));
      stores.enter('v2', node(1));
      stores.watch();
      leave();
      work(stores, onV3, () => node(3), 1000);
    },
    { both: 'host:2', either: NODE, v3: 'host:3' },
    UNKNOWN_BESIDE_V3,
  ],
  [
    'both at work, killed while it waits, under the default label, and v3 at work',
    (stores) => {
      stores.watch();
      work(stores, onBoth, node);
      const leave = onBoth(stores, node(2));
      stores.enter('v2', node());
      leave();
      work(stores, onV3, () => node(3), 1000);
    },
    { both: 'host:1 host:2', v3: 'host:3' },
    BEGUN,
  ],
  [
    'both and v3 at work, while v3 once does not answer both in time',
    (stores) => {
      stores.watch();
      work(stores, onBoth, node);
      onV2For(stores, node(), 3000);
      work(stores, onV3, () => node(2));
    },
    { both: NODE, v3: 'host:2' },
    BEGUN,
  ],
  [
    'the same with a label that a user chose, so that one of these processes may be of kind v2',
    (stores) => {
      stores.watch();
      work(stores, onBoth, () => labelled(CUSTOM));
      onV2For(stores, labelled(CUSTOM), 3000);
      work(stores, onV3, () => node(2));
    },
    { both: CUSTOM, either: CUSTOM, v3: 'host:2' },
    UNKNOWN_BESIDE_V3,
  ],
  [
    'v2 and both at work, with one label that a user chose',
    (stores) => {
      stores.watch();
      work(stores, onBoth, () => labelled(CUSTOM));
      work(stores, onV2, () => labelled(CUSTOM));
    },
    { v2: CUSTOM, both: CUSTOM },
    NOT_SAFE,
  ],
  [
    'both at work, and a waiter with the same label, if a user chose it',
    (stores) => {
      stores.watch();
      work(stores, onBoth, () => labelled(CUSTOM));
      onBoth(stores, labelled(CUSTOM));
      stores.enter('v2', labelled(CUSTOM));
      stores.pass(1000);
    },
    { both: CUSTOM, either: CUSTOM },
    UNKNOWN,
  ],
  [
    'v2 at work on one lock, and waiting on another that v3 uses',
    (stores) => {
      stores.watch();
      work(stores, onV2, node);
      onBoth(stores, node(2), 'other');
      stores.enter('v2', node(), 'other');
      onV3(stores, node(3), 'other');
    },
    { v2: `${NODE} ${NODE}`, both: 'host:2', v3: 'host:3' },
    TORN,
  ],
  [
    'v2 and v3 at work on different locks',
    (stores) => {
      stores.watch();
      work(stores, onV2, node);
      onV3(stores, node(2), 'other');
    },
    { v2: NODE, v3: 'host:2' },
    NOT_SAFE,
  ],
  [
    'a waiter that comes after the watch has been long enough',
    (stores) => {
      stores.watch();
      work(stores, onBoth, () => labelled(CUSTOM), 2000);
      onBoth(stores, node(2));
      stores.enter('v2', labelled(CUSTOM));
    },
    { both: `${CUSTOM} host:2` },
    SAFE,
  ],
])('%s', (_what, happens, kinds, step) => {
  const stores = new MovingStores();
  happens(stores);
  expect(named(stores.kinds())).toEqual(kinds);
  expect(judged(stores.kinds())).toMatch(step);
});

test('a client that uses several locks counts once', () => {
  const stores = new MovingStores();
  stores.watch();
  onBoth(stores, node(), 'one');
  onBoth(stores, node(), 'other');
  const [first] = judgeMove(stores.kinds());
  expect(first?.text).toMatch(/: 1 \("one" by host:1, "other" by host:1\)$/);
});

test('a longer watch may decide while an entry of unknown kind is on v2', () => {
  const stores = new MovingStores();
  stores.watch();
  const leave = onBoth(stores, node());
  expect(stores.mayDecide()).toBe(false);
  const waiter = stores.enter('v2', PYTHON);
  expect(stores.mayDecide()).toBe(true);
  leave();
  stores.pass(50);
  waiter.leave();
  expect(stores.mayDecide()).toBe(false);
});
