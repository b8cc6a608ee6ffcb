import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { Lock } from '../src/index.ts';
import { gate } from '../test/support/gate.ts';
import { freshName, queueOn, raw, rejection, useClient } from '../test/support/locks.ts';
import { ExclusiveResource } from './exclusive-resource.ts';
import { type Python, portOf, startPython } from './python.ts';

const NODE = { contenders: 4, times: 45 };
const PYTHON = { processes: 2, times: 60 };
const CYCLES = NODE.contenders * NODE.times + PYTHON.processes * PYTHON.times;
const LOCK_TTL = 60;

let pythons: Python[];

beforeAll(async () => {
  pythons = await Promise.all(Array.from({ length: PYTHON.processes }, () => startPython(inject('etcd'))));
});

afterAll(() => Promise.all(pythons.map((python) => python.stop())));

test(`${CYCLES} cycles of Node and Python contenders lose no update, and no two holders overlap`, async () => {
  const name = freshName();
  const { counter, inside } = freshKeys();
  const resource = new ExclusiveResource();
  const nodes = Array.from({ length: NODE.contenders }, async (_, index) => {
    const lock = new Lock(useClient(), name);
    const held: string[] = [];
    for (let cycle = 0; cycle < NODE.times; cycle += 1) {
      expect(await lock.acquire({ lockTtl: LOCK_TTL })).toBe(true);
      const { lockKey } = lock;
      held.push(lockKey);
      await resource.use(lockKey, () => within(inside, lockKey, () => addOne(counter)));
      await lock.release();
      // Each contender pauses for a different time, so that the length of the queue varies.
      for (let read = 0; read < 4 * index; read += 1) await countOf(counter);
    }
    return held;
  });
  const others = pythons.map(async (python) => {
    const lock = await python.lock(name);
    return lock.cycle({
      times: PYTHON.times,
      counter,
      inside,
      counterPort: portOf(inject('plain')),
      lockTtl: LOCK_TTL,
    });
  });
  const held = await Promise.all([...nodes, ...others]);
  expect(CYCLES).toBe(300);
  expect(await countOf(counter)).toBe(CYCLES);
  expect(new Set(held.flat()).size).toBe(CYCLES);
  for (const keys of held) expect(keys).toEqual([...keys].sort());
  // Otherwise one language might have finished its cycles before the other began.
  expect(changesOfLanguage(held.slice(0, NODE.contenders).flat(), held.slice(NODE.contenders).flat())).toBeGreaterThan(
    9,
  );
  expect(await queueOn(name)).toEqual([]);
  expect((await raw('GET', inside, undefined, inject('plain'))).status).toBe(404);
}, 120_000);

// Shows that the test above detects what it claims to detect.
test('without the lock an update is lost, and both guards detect the overlap', async () => {
  const { counter, inside } = freshKeys();
  const [hasRead, mayWrite] = [gate(), gate()];
  const first = addOne(counter, () => {
    hasRead.open();
    return mayWrite.opened;
  });
  await hasRead.opened;
  await addOne(counter);
  mayWrite.open();
  await first;
  expect(await countOf(counter)).toBe(1);

  const resource = new ExclusiveResource();
  const leave = gate();
  const using = resource.use('first', () => leave.opened);
  expect(await rejection(resource.use('second', async () => {}))).toMatchObject({
    message: 'second overlaps with first',
  });
  leave.open();
  await using;

  const [python] = pythons;
  const lock = await python?.lock(freshName());
  await within(inside, 'Node', async () => {
    expect(await rejection(within(inside, 'another Node', async () => {}))).toBeInstanceOf(Error);
    const cycle = lock?.cycle({ times: 1, counter, inside, counterPort: portOf(inject('plain')), lockTtl: LOCK_TTL });
    expect(await rejection(Promise.resolve(cycle))).toMatchObject({ type: 'EtcdAlreadyExist' });
  });
});

function freshKeys() {
  const id = randomUUID();
  return { counter: `/compat-counter/${id}`, inside: `/compat-inside/${id}` };
}

/** How often the lock passed from one language to the other: keys are held in the order of their numbers. */
function changesOfLanguage(node: string[], python: string[]): number {
  const byNode = new Set(node);
  const holders = [...node, ...python].sort().map((key) => byNode.has(key));
  return holders.filter((holder, index) => index > 0 && holder !== holders[index - 1]).length;
}

async function countOf(counter: string): Promise<number> {
  const { status, body } = await raw('GET', `${counter}?quorum=true`, undefined, inject('plain'));
  return status === 404 ? 0 : Number(body.node.value);
}

/** Reads, then writes without a condition. */
async function addOne(counter: string, between?: () => Promise<void>): Promise<void> {
  const seen = await countOf(counter);
  await between?.();
  await raw('PUT', counter, { value: String(seen + 1) }, inject('plain'));
}

/** As harness.py: creates the key, which must not exist, runs the work, then removes the key, which must still be ours. */
async function within(inside: string, user: string, work: () => Promise<void>): Promise<void> {
  const entered = await raw('PUT', inside, { value: user, prevExist: 'false' }, inject('plain'));
  if (entered.status !== 201) throw new Error(`${user} overlaps: ${JSON.stringify(entered.body)}`);
  await work();
  const left = await raw('DELETE', `${inside}?prevValue=${encodeURIComponent(user)}`, undefined, inject('plain'));
  if (left.status !== 200) throw new Error(`${user} was overlapped: ${JSON.stringify(left.body)}`);
}
