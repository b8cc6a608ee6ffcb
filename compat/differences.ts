import { expect, inject } from 'vitest';
import { EtcdRootReadOnly } from '../src/errors.ts';
import { EtcdWatchTimedOut } from '../src/index.ts';
import { rejection } from '../test/support/locks.ts';
import type { Histories, History } from './history.ts';
import type { Stage } from './stage.ts';

/** A scenario in which this package differs from python-etcd on purpose (docs/python-etcd.md says why). */
export interface Difference {
  readonly says: string;
  /** The histories expected of this package, derived from python's. */
  expected(python: Histories): Histories;
  replay(stage: Stage): Promise<void>;
}

const TTL = { lockTtl: 60 };

const SAME_FROM_BOTH = [
  ...['with space', 'umläut', 'a/b/c', 'dots.and-dashes_~', 'plus+sign', "quote'", 'semi;colon', 'at@colon:eq=amp&'],
  ...['中文', 'back\\slash', '[x]{y}|^`<>"'],
];
/** Maps each name to the directory in which python creates the key. */
const ESCAPED_HERE = { 'percent%41': '/_locks/percentA', 'q?x=1': '/_locks/q', 'hash#tag': '/_locks/hash' };
/** Maps each name to the directory in which python creates the key. */
const REFUSED_HERE = {
  '/lead': '/_locks/lead',
  'trail/': '/_locks/trail',
  'a//b': '/_locks/a/b',
  '.': '/_locks',
  '..': '/',
  'a/../b': '/_locks/b',
};

/** By the title of the scenario. */
export const differences: Readonly<Record<string, Difference>> = {
  'lock_ttl=0': {
    says: 'python returns True and its key expires within 0.5 s; ours throws RangeError before any request',
    expected: () => ({}),
    async replay(stage) {
      const lock = stage.lock('s12');
      expect(await rejection(lock.acquire({ lockTtl: 0 }))).toBeInstanceOf(RangeError);
      await stage.see(lock, 0);
    },
  },

  'timeout=1 on a contended lock': {
    says: 'python waits forever; ours rejects with EtcdWatchTimedOut and removes its entry',
    expected(python) {
      const { appends, states } = historyOf(python, '/_locks/s15');
      expect(states.at(-1)).toMatchObject([{ owner: 'B' }]);
      const [alone, contended] = [states[0] ?? [], states[1] ?? []];
      return { '/_locks/s15': { appends, states: [alone, contended, alone, []] } };
    },
    async replay(stage) {
      const [a, b] = [stage.lock('s15'), stage.lock('s15')];
      await a.acquire(TTL);
      await stage.see(a, 1);
      const timedOut = rejection(b.acquire({ timeout: 4, ...TTL }));
      await stage.see(a, 2);
      expect(await timedOut).toBeInstanceOf(EtcdWatchTimedOut);
      await stage.see(a, 1);
      await a.release();
      await stage.see(a, 0);
    },
  },

  names: {
    says: 'python creates keys in other directories for "%41", "?", "#", a leading or trailing "/", "//", "." and ".."; ours escapes the first three and rejects the others',
    expected(python) {
      const clean = historyOf(python, '/_locks/with space');
      const same = SAME_FROM_BOTH.map((name) => [`/_locks/${name}`, historyOf(python, `/_locks/${name}`)]);
      const escaped = Object.keys(ESCAPED_HERE).map((name) => [
        `/_locks/${name}`,
        { ...clean, appends: clean.appends.map((append) => ({ ...append, path: `/v2/keys/_locks/${name}` })) },
      ]);
      const elsewhere = [...Object.values(ESCAPED_HERE), ...Object.values(REFUSED_HERE)];
      // So that no name of the recording goes untested.
      expect(Object.keys(python).sort()).toEqual([...same.map(([path]) => path), ...elsewhere].sort());
      return Object.fromEntries([...same, ...escaped]);
    },
    async replay(stage) {
      for (const name of [...SAME_FROM_BOTH, ...Object.keys(ESCAPED_HERE)]) {
        const lock = stage.lock(name);
        expect(await lock.acquire(TTL)).toBe(true);
        await stage.see(lock, 1);
        await lock.release();
        await stage.see(lock, 0);
      }
      for (const name of Object.keys(REFUSED_HERE)) expect(() => stage.lock(name)).toThrow(RangeError);
    },
  },
};

/** Differences if a bridge to etcd v3 is in between. */
const onBridge: Readonly<Record<string, Difference>> = {
  'custom lock_prefix': {
    says: 'a bridge serves one lock prefix and refuses the append below another',
    expected(python) {
      const { appends } = historyOf(python, '/apps/locks/s14');
      return { '/apps/locks/s14': { appends, states: [] } };
    },
    async replay(stage) {
      expect(await rejection(stage.lock('s14', '/apps/locks').acquire(TTL))).toBeInstanceOf(EtcdRootReadOnly);
    },
  },
};

/** Returns the differences of a scenario on the server that the tests use. */
export const differenceIn = (scenario: string): Difference | undefined =>
  differences[scenario] ?? (inject('etcd') === inject('plain') ? undefined : onBridge[scenario]);

function historyOf(histories: Histories, path: string): History {
  const history = histories[path];
  if (history === undefined) throw new Error(`the recording has no queue ${path}`);
  return history;
}
