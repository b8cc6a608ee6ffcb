import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient, LockManager } from '../src/index.ts';
import { freshName, queueOn, raw } from '../test/support/locks.ts';
import { type Python, portOf, startPython } from './python.ts';

const LIMIT = 2;
const WORKERS = 4;
const CYCLES = 20;

let python: Python;

beforeAll(async () => {
  python = await startPython(inject('etcd'));
});

afterAll(() => python.stop());

test(`a semaphore has at most its limit of holders, and none while python-etcd holds the lock, ${CYCLES} times`, async () => {
  const name = freshName();
  const plain = inject('plain');
  const inside = `/compat-inside/${randomUUID()}`;
  const counter = `/compat-counter/${randomUUID()}`;
  const isPythonInside = async () => (await raw('GET', inside, undefined, plain)).status === 200;
  let isOver = false;
  let [now, most] = [0, 0];
  const overlaps: string[] = [];
  const work = async (key: string): Promise<void> => {
    now += 1;
    most = Math.max(most, now);
    // python-etcd creates the key while it holds the lock, for as long as several of these reads take.
    for (let reads = 0; reads < 3; reads += 1) if (await isPythonInside()) overlaps.push(key);
    now -= 1;
  };
  const workers = Array.from({ length: WORKERS }, async () => {
    const client = new EtcdClient({ endpoints: inject('etcd') });
    onTestFinished(() => client.close());
    const locks = new LockManager(client, { ttl: 60 });
    let holds = 0;
    for (; !isOver; holds += 1) await locks.request(name, { limit: LIMIT }, ({ key }) => work(key));
    return holds;
  });
  const lock = await python.lock(name);
  const options = { pause: 0.02, lockTtl: 60, counterPort: portOf(plain) };
  const cycles = lock.cycle({ times: CYCLES, inside, counter, ...options }).finally(() => {
    isOver = true;
  });
  expect(await cycles).toHaveLength(CYCLES);
  for (const holds of await Promise.all(workers)) expect(holds).toBeGreaterThan(0);
  expect(overlaps).toEqual([]);
  expect(most).toBe(LIMIT);
  expect((await raw('GET', counter, undefined, plain)).body.node.value).toBe(String(CYCLES));
  expect(await queueOn(name)).toEqual([]);
}, 120_000);
