import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { freshName, queueOn, raw, untilQueued } from '../../support/locks.ts';
import { useManager } from '../../support/managers.ts';
import { type RunningScript, startScript } from '../../support/script.ts';
import { until } from '../../support/until.ts';

const PROCESSES = 4;
const REQUESTS = 50;

const SET_UP = `
  import { LockManager } from 'etcd-v2-lock';
  import { V2Client } from './dist/v2/client.js';
  const { ETCD, NAME } = process.env;
  const client = new V2Client({ endpoints: ETCD });
  const print = (what) => console.log(JSON.stringify(what));
`;

/** Makes many requests at once. Each reads a counter that only the lock protects, then writes it incremented. */
const CONTENDER = `${SET_UP}
  const locks = new LockManager(client, { ttl: 60 });
  const counter = '/counters/' + NAME;
  const count = async ({ fencingToken }) => {
    const at = Number((await client.get(counter, { quorum: true })).node.value);
    await client.set(counter, String(at + 1));
    return { at, token: String(fencingToken) };
  };
  print(await Promise.all(Array.from({ length: ${REQUESTS} }, () => locks.request(NAME, count))));
  await client.close();
`;

/** Holds a lock until it is lost or the process is killed. */
const IDENTIFIED = `${SET_UP}
  const locks = new LockManager(client, { ttl: 6, identity: 'node-1' });
  const held = await locks.acquire(NAME);
  await client.set('/holding/' + NAME, 'yes');
  const alive = setInterval(() => {}, 1000);
  held.signal.addEventListener('abort', async () => {
    print({ name: held.signal.reason.name, message: held.signal.reason.message, token: String(held.fencingToken) });
    await held.release();
    await client.close();
    clearInterval(alive);
  });
`;

/** Waits until the script holds the lock. */
const untilHolding = (name: string): Promise<unknown> =>
  until(
    () => raw('GET', `/holding/${name}`),
    ({ status }) => status === 200,
  );

function start(source: string, name: string): RunningScript {
  const script = startScript(source, { ETCD: inject('etcd'), NAME: name });
  onTestFinished(() => {
    script.process.kill('SIGKILL');
  });
  return script;
}

/** Returns what the script printed, after it has exited without an error. */
async function outputOf<T>({ result }: RunningScript): Promise<T> {
  const { code, stdout, stderr } = await result;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

interface Turn {
  readonly process: number;
  /** The value of the counter that this turn read. */
  readonly at: number;
  readonly token: bigint;
}

/** Returns the most turns that one process had in a row while all processes still had requests. */
function longestRun(turns: readonly Turn[]): number {
  const left = new Map<number, number>();
  let longest = 0;
  let run = 0;
  for (const [i, { process }] of turns.entries()) {
    run = process === turns[i - 1]?.process ? run + 1 : 1;
    longest = Math.max(longest, run);
    left.set(process, (left.get(process) ?? REQUESTS) - 1);
    if (left.get(process) === 0) break;
  }
  return longest;
}

test(`${PROCESSES} processes with ${REQUESTS} requests each take turns`, async () => {
  const name = freshName();
  const locks = useManager({ ttl: 60 });
  // All processes have entries in the queue before the first one gets the lock.
  const scripts = await locks.request(name, async () => {
    await raw('PUT', `/counters/${name}`, { value: '0' });
    const started = Array.from({ length: PROCESSES }, () => start(CONTENDER, name));
    await untilQueued(name, 1 + PROCESSES);
    return started;
  });
  const outputs = await Promise.all(scripts.map((script) => outputOf<{ at: number; token: string }[]>(script)));
  const turns = outputs
    .flatMap((of, process) => of.map(({ at, token }): Turn => ({ process, at, token: BigInt(token) })))
    .sort((a, b) => a.at - b.at);
  expect(turns.map(({ at }) => at)).toEqual(Array.from({ length: PROCESSES * REQUESTS }, (_, i) => i));
  // The turns come in the order in which their entries were created.
  expect(turns.map(({ token }) => token)).toEqual(turns.map(({ token }) => token).sort((a, b) => (a < b ? -1 : 1)));
  for (const of of outputs) expect(of.map(({ at }) => at)).toEqual(of.map(({ at }) => at).sort((a, b) => a - b));
  const run = longestRun(turns);
  // biome-ignore lint/suspicious/noConsole: this is the only place that shows how fair the turns are.
  console.info(`${PROCESSES} processes with ${REQUESTS} requests each: at most ${run} turns in a row for one process`);
  expect(run).toBeLessThan(REQUESTS / 5);
  expect(await queueOn(name)).toEqual([]);
});

describe('a process with an identity', () => {
  test('acquires the lock of its dead predecessor at once, with a greater token', async () => {
    const name = freshName();
    const dead = start(IDENTIFIED.replace('ttl: 6', 'ttl: 600'), name);
    await untilHolding(name);
    const [left] = await queueOn(name);
    dead.process.kill('SIGKILL');
    await dead.result;
    const held = await useManager({ ttl: 60, identity: 'node-1' }).acquire(name);
    expect(held.fencingToken).toBeGreaterThan(BigInt(left?.key.split('/').at(-1) ?? ''));
    expect(await queueOn(name)).toMatchObject([{ key: held.key }]);
    await held.release();
  });

  test('loses the lock to a second process with the same identity, and the error names the identity', async () => {
    const name = freshName();
    const first = start(IDENTIFIED, name);
    await untilHolding(name);
    const second = await useManager({ ttl: 60, identity: 'node-1' }).acquire(name);
    const lost = await outputOf<{ name: string; message: string; token: string }>(first);
    expect(lost).toMatchObject({
      name: 'EtcdLockLost',
      message: expect.stringContaining('another process have the identity "node-1"?'),
    });
    expect(second.fencingToken).toBeGreaterThan(BigInt(lost.token));
    expect(await queueOn(name)).toMatchObject([{ key: second.key }]);
    expect(await second.release()).toBe(true);
  });
});
