import { expect } from 'vitest';
import { EtcdWatchTimedOut } from '../src/index.ts';
import { rejection } from '../test/support/locks.ts';
import type { Histories, History } from './history.ts';
import type { Stage } from './stage.ts';

/** A scenario in which this package does not do as python-etcd (docs/python-etcd-lock.md says why). */
export interface Difference {
  readonly says: string;
  /** What is expected here, given what python did. */
  expected(python: Histories): Histories;
  replay(stage: Stage): Promise<void>;
}

const TTL = { lockTtl: 60 };

const SAME_FROM_BOTH = [
  ...['with space', 'umläut', 'a/b/c', 'dots.and-dashes_~', 'plus+sign', "quote'", 'semi;colon', 'at@colon:eq=amp&'],
  ...['中文', 'back\\slash', '[x]{y}|^`<>"'],
];
/** With the directory that python's key went to. */
const ESCAPED_HERE = { 'percent%41': '/_locks/percentA', 'q?x=1': '/_locks/q', 'hash#tag': '/_locks/hash' };
/** With the directory that python's key went to. */
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
    says: 'python answers True and its key is gone at the next tick; here it is a RangeError before any request',
    expected: () => ({}),
    async replay(stage) {
      const lock = stage.lock('s12');
      expect(await rejection(lock.acquire({ lockTtl: 0 }))).toBeInstanceOf(RangeError);
      await stage.see(lock, 0);
    },
  },

  'timeout=1 on a contended lock': {
    says: 'python waits for ever; here it rejects with EtcdWatchTimedOut and gives the place up',
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
      const timedOut = rejection(b.acquire({ timeout: 1, ...TTL }));
      await stage.see(a, 2);
      expect(await timedOut).toBeInstanceOf(EtcdWatchTimedOut);
      await stage.see(a, 1);
      await a.release();
      await stage.see(a, 0);
    },
  },

  names: {
    says: 'python leaves keys in other directories for "%41", "?", "#", "/" at an end, "//", "." and ".."; here the first three are escaped, the others refused',
    expected(python) {
      const clean = historyOf(python, '/_locks/with space');
      const same = SAME_FROM_BOTH.map((name) => [`/_locks/${name}`, historyOf(python, `/_locks/${name}`)]);
      const escaped = Object.keys(ESCAPED_HERE).map((name) => [
        `/_locks/${name}`,
        { ...clean, appends: clean.appends.map((append) => ({ ...append, path: `/v2/keys/_locks/${name}` })) },
      ]);
      const elsewhere = [...Object.values(ESCAPED_HERE), ...Object.values(REFUSED_HERE)];
      // So that no name of the recording is passed over.
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

function historyOf(histories: Histories, path: string): History {
  const history = histories[path];
  if (history === undefined) throw new Error(`the recording has nothing of ${path}`);
  return history;
}
