import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { freshName, queueOn, raw } from '../test/support/locks.ts';
import { startScript } from '../test/support/script.ts';
import { type Python, portOf, startPython } from './python.ts';

const NODE = { processes: 2, clients: 3, steps: 12 };
const PYTHON = { locks: 2, times: 20 };

/** One step of a client: `times` requests at once; each holds the lock for `reads` reads of the guarded keys. */
const step = fc.record({
  mode: fc.constantFrom('shared', 'shared', 'exclusive'),
  ifAvailable: fc.constantFrom(false, false, false, true),
  times: fc.integer({ min: 1, max: 3 }),
  reads: fc.nat(3),
});
const schedule = fc.array(fc.array(step, { minLength: NODE.steps, maxLength: NODE.steps }), {
  minLength: NODE.clients,
  maxLength: NODE.clients,
});

/**
 * A writer creates the key INSIDE, increments a counter and removes the key, as harness.py does. A reader expects no such key,
 * and the same count, at its start and at its end: this detects any writer that overlaps with it.
 */
const CLIENTS = `
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  import { V2Client } from './dist/v2/client.js';
  const { ETCD, PLAIN, NAME, INSIDE, COUNTER, SCHEDULE } = process.env;
  const store = new V2Client({ endpoints: PLAIN });
  const counts = { writes: 0, readsTogether: 0 };
  let readers = 0;

  const valueOf = async (key) => {
    try {
      return (await store.get(key, { quorum: true })).node.value;
    } catch (error) {
      if (error.code !== 'ETCD_KEY_NOT_FOUND') throw error;
    }
  };
  const observe = async () => JSON.stringify([await valueOf(INSIDE), await valueOf(COUNTER)]);

  async function read(reads) {
    readers += 1;
    counts.readsTogether = Math.max(counts.readsTogether, readers);
    const before = await observe();
    for (let i = 0; i < reads; i += 1) await observe();
    const after = await observe();
    readers -= 1;
    if (before !== after || JSON.parse(before)[0]) throw new Error('a writer overlaps with a reader: ' + before + after);
  }

  async function write(reads, key) {
    await store.set(INSIDE, key, { prevExist: false });
    const count = Number((await valueOf(COUNTER)) ?? 0);
    for (let i = 0; i < reads; i += 1) await observe();
    await store.set(COUNTER, String(count + 1));
    await store.delete(INSIDE, { prevValue: key });
    counts.writes += 1;
  }

  await Promise.all(JSON.parse(SCHEDULE).map(async (steps) => {
    const client = new EtcdClient({ endpoints: ETCD });
    const locks = new LockManager(client, { ttl: 60 });
    for (const { mode, ifAvailable, times, reads } of steps)
      await Promise.all(Array.from({ length: times }, () => locks.request(NAME, { mode, ifAvailable }, (held) => {
        if (held) return mode === 'shared' ? read(reads) : write(reads, held.key);
      })));
    await client.close();
  }));
  await store.close();
  console.log(JSON.stringify(counts));
`;

let python: Python;

beforeAll(async () => {
  python = await startPython(inject('etcd'));
});

afterAll(() => python.stop());

interface Counts {
  readonly writes: number;
  readonly readsTogether: number;
}

/** One process with several clients. */
async function nodeProcess(env: Record<string, string>): Promise<Counts> {
  const script = startScript(CLIENTS, { ETCD: inject('etcd'), PLAIN: inject('plain'), ...env });
  onTestFinished(() => {
    script.process.kill('SIGKILL');
  });
  const { code, stdout, stderr } = await script.result;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

test('Node and python-etcd readers run together, and a writer runs alone', async () => {
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
    return lock.cycle({
      times: PYTHON.times,
      pause: 0.005,
      lockTtl: 60,
      counterPort: portOf(inject('plain')),
      ...guards,
    });
  });
  // biome-ignore lint/suspicious/noConsole: reproducing a failure needs the seed.
  console.info(`readers and writers: seed ${seed}`);
  const [counts] = await Promise.all([Promise.all(nodes), Promise.all(pythons)]);
  const written = counts.reduce((sum, { writes }) => sum + writes, PYTHON.locks * PYTHON.times);
  expect((await raw('GET', guards.counter, undefined, inject('plain'))).body.node.value).toBe(String(written));
  for (const { readsTogether } of counts) expect(readsTogether).toBeGreaterThan(1);
  expect((await raw('GET', guards.inside, undefined, inject('plain'))).status).toBe(404);
  expect(await queueOn(name)).toEqual([]);
});
