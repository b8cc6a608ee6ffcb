import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Exchange } from '../../../../compat/transcript.ts';
import { PythonError, resultOf } from '../python-client.ts';
import { PythonLock } from '../python-lock.ts';

/** An exchange on one of the connections. Each lock of a recording has a connection of its own. */
type Recorded = Exchange & { readonly connection: number };

const TRANSCRIPT = new URL('../../../../compat/transcripts/python-etcd.json', import.meta.url);
const { scenarios } = JSON.parse(readFileSync(TRANSCRIPT, 'utf8')) as {
  scenarios: readonly { readonly scenario: string; readonly exchanges: readonly Recorded[] }[];
};

/** What the Python code of a recording does with its locks, one after the other for each lock. */
type Script = Readonly<Record<string, (lock: PythonLock) => Promise<unknown>>>;

/** By the title of the scenario: the calls on each lock, named by the connections on which its exchanges were. */
const scripts: Readonly<Record<string, Script>> = {
  'uncontended: acquire(lock_ttl=60) then release()': {
    1: async (lock) => {
      expect(await lock.acquire({ ttl: 60 })).toBe(true);
      expect(await lock.isAcquired()).toBe(true);
      await lock.release();
    },
  },
  'acquire twice on one Lock renews the TTL': {
    1: async (lock) => {
      await lock.acquire({ ttl: 60 });
      expect(await lock.acquire({ ttl: 90 })).toBe(true);
      await lock.release();
    },
  },
  'release without ever acquiring': {
    1: async (lock) => {
      await expect(lock.release()).rejects.toMatchObject({ name: 'ValueError', message: 'No sequence present.' });
    },
  },
  'contended: acquire(blocking=False) keeps its place, polled until the owner releases': {
    1: acquireAndRelease,
    2: async (lock) => {
      const results = [];
      for (let i = 0; i < 3; i++) results.push(await lock.acquire({ blocking: false, ttl: 60 }));
      expect(results).toEqual([false, false, true]);
      await lock.release();
    },
  },
  'contended: blocking acquire, handed over by release': { 1: acquireAndRelease, 2: acquireAndRelease },
  'three contenders, the middle one gives up by release': {
    1: acquireAndRelease,
    2: async (lock) => {
      expect(await lock.acquire({ blocking: false, ttl: 60 })).toBe(false);
      await lock.release();
    },
    3: acquireAndRelease,
  },
  'a waiter whose own key expires while it waits': {
    1: acquireAndRelease,
    2: async (lock) => {
      await expect(lock.acquire({ ttl: 1 })).rejects.toMatchObject({ name: 'EtcdLockExpired' });
    },
  },
  'owner whose key expires: waiter takes over on the expire event': {
    1: async (lock) => {
      await lock.acquire({ ttl: 1 });
      expect(await lock.isAcquired()).toBe(false);
      await lock.release();
    },
    2: acquireAndRelease,
  },
  'context manager: no TTL': {
    1: async (lock) => {
      await lock.acquire({ ttl: null });
      expect(await lock.isAcquired()).toBe(true);
      await lock.release();
    },
  },
  'lock_ttl=0': {
    1: async (lock) => {
      expect(await lock.acquire({ ttl: 0 })).toBe(true);
    },
  },
  'lock_ttl=None': {
    1: async (lock) => {
      for (let i = 0; i < 2; i++) expect(await lock.acquire({ ttl: null })).toBe(true);
      await lock.release();
    },
  },
  'custom lock_prefix': { 1: acquireAndRelease },
};

async function acquireAndRelease(lock: PythonLock): Promise<void> {
  expect(await lock.acquire({ ttl: 60 })).toBe(true);
  await lock.release();
}

const lineOf = (method: string, path: string, body: string | null = null): string => `${method} ${path} ${body}`;

for (const [title, script] of Object.entries(scripts))
  test(`the model of python-etcd's Lock sends what was recorded: ${title}`, async () => {
    const { exchanges = [] } = scenarios.find(({ scenario }) => scenario === title) ?? {};
    expect([...new Set(exchanges.map(({ connection }) => `${connection}`))]).toEqual(Object.keys(script));
    for (const [connection, calls] of Object.entries(script)) {
      const recorded = exchanges.filter((exchange) => `${exchange.connection}` === connection);
      const answers = [...recorded];
      const sent: string[] = [];
      const lock = new PythonLock({
        path: recorded[0]?.request.path.replace(/\?.*/, '') ?? '',
        uuid: recorded.map(({ request }) => /value=(\w+)/.exec(request.body ?? '')?.[1]).find(Boolean) ?? '',
        now: () => 0,
        execute: async (method, path, body) => {
          sent.push(lineOf(method, path, body));
          const answer = answers.shift();
          if (!answer) throw new Error(`the model sends more than was recorded: ${sent.at(-1)}`);
          const { status, body: answered } = answer.response;
          return resultOf({ status, body: JSON.stringify(answered), sentAt: 0 });
        },
      });
      await calls(lock);
      expect(sent).toEqual(recorded.map(({ request: { method, path, body } }) => lineOf(method, path, body)));
    }
  });

/** Why the others are not replayed. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  'release twice': 'the recording lacks the first part',
  'set uuid recovery from a second Lock object': 'no model sets a uuid',
  'set uuid that does not exist': 'no model sets a uuid',
  names: 'the models use plain names',
  'timeout=1 on a contended lock': 'no model waits with a timeout',
};

test('each scenario of the recording is replayed, or left out for a reason', () => {
  const known = [...Object.keys(scripts), ...Object.keys(LEFT_OUT)].sort();
  expect(known).toEqual(scenarios.map(({ scenario }) => scenario).sort());
});

test('a key that was renewed after its TTL stays overdue', async () => {
  let time = 0;
  const key = '/_locks/a/00000000000000000007';
  const node = { key, value: 'u', modifiedIndex: 7 };
  const lock = new PythonLock({
    path: '/v2/keys/_locks/a',
    uuid: 'u',
    now: () => time,
    execute: async (method, path) => {
      if (method === 'GET' && path.endsWith('recursive=true')) {
        if (time === 0) throw new PythonError('EtcdKeyNotFound');
        return { node: { key: '/_locks/a', modifiedIndex: 6, nodes: [node] }, sentAt: time };
      }
      time += 100;
      return { node, sentAt: time - 100 };
    },
  });
  await lock.acquire({ ttl: 5 });
  time = 4000;
  await lock.acquire({ ttl: 5 });
  time = 8000;
  expect(lock.isOverdue).toBe(false);
  time = 9000;
  expect(lock.isOverdue).toBe(true);
  await lock.acquire({ ttl: 5 });
  expect(lock.isOverdue).toBe(true);
});
