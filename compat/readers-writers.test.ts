import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { freshName, queueOn, raw } from '../test/support/locks.ts';
import { startScript } from '../test/support/script.ts';
import { type Python, startPython } from './python.ts';

const NODE = { processes: 2, clients: 3, steps: 12 };
const PYTHON = { locks: 2, times: 20 };

/** What a client does: so many requests at once, and how long each holds the lock, in looks at what it guards. */
const step = fc.record({
  mode: fc.constantFrom('shared', 'shared', 'exclusive'),
  ifAvailable: fc.constantFrom(false, false, false, true),
  times: fc.integer({ min: 1, max: 3 }),
  looks: fc.nat(3),
});
const schedule = fc.array(fc.array(step, { minLength: NODE.steps, maxLength: NODE.steps }), {
  minLength: NODE.clients,
  maxLength: NODE.clients,
});

/**
 * A writer is inside while a key is there, and counts, as harness.py does. A reader must find nobody inside at its beginning
 * and at its end, and the count unchanged in between: so it sees any writer beside it.
 */
const CLIENTS = `
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  const { ETCD, NAME, INSIDE, COUNTER, SCHEDULE } = process.env;
  const store = new EtcdClient({ endpoints: ETCD });
  const told = { writes: 0, readsTogether: 0 };
  let readers = 0;

  const valueOf = async (key) => {
    try {
      return (await store.get(key, { quorum: true })).node.value;
    } catch (error) {
      if (error.code !== 'ETCD_KEY_NOT_FOUND') throw error;
    }
  };
  const look = async () => JSON.stringify([await valueOf(INSIDE), await valueOf(COUNTER)]);

  async function read(looks) {
    readers += 1;
    told.readsTogether = Math.max(told.readsTogether, readers);
    const before = await look();
    for (let i = 0; i < looks; i += 1) await look();
    const after = await look();
    readers -= 1;
    if (before !== after || JSON.parse(before)[0]) throw new Error('a writer beside a reader: ' + before + after);
  }

  async function write(looks, key) {
    await store.set(INSIDE, key, { prevExist: false });
    const count = Number((await valueOf(COUNTER)) ?? 0);
    for (let i = 0; i < looks; i += 1) await look();
    await store.set(COUNTER, String(count + 1));
    await store.delete(INSIDE, { prevValue: key });
    told.writes += 1;
  }

  await Promise.all(JSON.parse(SCHEDULE).map(async (steps) => {
    const client = new EtcdClient({ endpoints: ETCD });
    const locks = new LockManager(client, { ttl: 60 });
    for (const { mode, ifAvailable, times, looks } of steps)
      await Promise.all(Array.from({ length: times }, () => locks.request(NAME, { mode, ifAvailable }, (held) => {
        if (held) return mode === 'shared' ? read(looks) : write(looks, held.key);
      })));
    await client.close();
  }));
  await store.close();
  console.log(JSON.stringify(told));
`;

let python: Python;

beforeAll(async () => {
  python = await startPython(inject('etcd'));
});

afterAll(() => python.stop());

interface Told {
  readonly writes: number;
  readonly readsTogether: number;
}

/** One process with several clients. */
async function nodeProcess(env: Record<string, string>): Promise<Told> {
  const script = startScript(CLIENTS, { ETCD: inject('etcd'), ...env });
  onTestFinished(() => {
    script.process.kill('SIGKILL');
  });
  const { code, stdout, stderr } = await script.result;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

test('readers and writers of Node and python-etcd: readers together, a writer alone', async () => {
  const seed = Date.now() % 2 ** 31;
  const name = freshName();
  const guards = { inside: `/compat-inside/${randomUUID()}`, counter: `/compat-counter/${randomUUID()}` };
  const nodes = fc
    .sample(schedule, { seed, numRuns: NODE.processes })
    .map((steps) =>
      nodeProcess({ NAME: name, INSIDE: guards.inside, COUNTER: guards.counter, SCHEDULE: JSON.stringify(steps) }),
    );
  const pythons = Array.from({ length: PYTHON.locks }, async () => {
    const lock = await python.lock(name);
    return lock.cycle({ times: PYTHON.times, pause: 0.005, lockTtl: 60, ...guards });
  });
  // biome-ignore lint/suspicious/noConsole: who sees a failure needs the seed.
  console.info(`readers and writers: seed ${seed}`);
  const [told] = await Promise.all([Promise.all(nodes), Promise.all(pythons)]);
  const written = told.reduce((sum, { writes }) => sum + writes, PYTHON.locks * PYTHON.times);
  expect((await raw('GET', guards.counter)).body.node.value).toBe(String(written));
  for (const { readsTogether } of told) expect(readsTogether).toBeGreaterThan(1);
  expect((await raw('GET', guards.inside)).status).toBe(404);
  expect(await queueOn(name)).toEqual([]);
}, 120_000);
