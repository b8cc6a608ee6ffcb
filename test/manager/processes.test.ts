import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { freshName, queueOn, raw, untilQueued } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';
import { type RunningScript, startScript } from '../support/script.ts';
import { until } from '../support/until.ts';

const PROCESSES = 4;
const REQUESTS = 50;

const SET_UP = `
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  const { ETCD, NAME } = process.env;
  const client = new EtcdClient({ endpoints: ETCD });
  const tell = (what) => console.log(JSON.stringify(what));
`;

/** Reads a counter that nothing but the lock guards, then writes it, in each of many requests made at once. */
const CONTENDER = `${SET_UP}
  const locks = new LockManager(client, { ttl: 60 });
  const counter = '/counters/' + NAME;
  const count = async ({ fencingToken }) => {
    const at = Number((await client.get(counter, { quorum: true })).node.value);
    await client.set(counter, String(at + 1));
    return { at, token: String(fencingToken) };
  };
  tell(await Promise.all(Array.from({ length: ${REQUESTS} }, () => locks.request(NAME, count))));
  await client.close();
`;

/** Holds a lock until it is lost or the process is killed. */
const IDENTIFIED = `${SET_UP}
  const locks = new LockManager(client, { ttl: 6, identity: 'node-1' });
  const held = await locks.acquire(NAME);
  await client.set('/holding/' + NAME, 'yes');
  const alive = setInterval(() => {}, 1000);
  held.signal.addEventListener('abort', async () => {
    tell({ name: held.signal.reason.name, message: held.signal.reason.message, token: String(held.fencingToken) });
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

/** What the script told, once it has ended well. */
async function toldBy<T>({ result }: RunningScript): Promise<T> {
  const { code, stdout, stderr } = await result;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

interface Turn {
  readonly process: number;
  /** What the counter said. */
  readonly at: number;
  readonly token: bigint;
}

/** The most turns that one process had in a row while all of them still had requests. */
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

test(`${PROCESSES} processes with ${REQUESTS} requests each have their turns by turns`, async () => {
  const name = freshName();
  const locks = useManager({ ttl: 60 });
  // All of them stand in line before the first one begins.
  const scripts = await locks.request(name, async () => {
    await raw('PUT', `/counters/${name}`, { value: '0' });
    const started = Array.from({ length: PROCESSES }, () => start(CONTENDER, name));
    await untilQueued(name, 1 + PROCESSES);
    return started;
  });
  const told = await Promise.all(scripts.map((script) => toldBy<{ at: number; token: string }[]>(script)));
  const turns = told
    .flatMap((of, process) => of.map(({ at, token }): Turn => ({ process, at, token: BigInt(token) })))
    .sort((a, b) => a.at - b.at);
  expect(turns.map(({ at }) => at)).toEqual(Array.from({ length: PROCESSES * REQUESTS }, (_, i) => i));
  // In the order in which their entries were made.
  expect(turns.map(({ token }) => token)).toEqual(turns.map(({ token }) => token).sort((a, b) => (a < b ? -1 : 1)));
  for (const of of told) expect(of.map(({ at }) => at)).toEqual(of.map(({ at }) => at).sort((a, b) => a - b));
  const run = longestRun(turns);
  // biome-ignore lint/suspicious/noConsole: how fair it is can be seen here only.
  console.info(`${PROCESSES} processes with ${REQUESTS} requests each: at most ${run} turns of one in a row`);
  expect(run).toBeLessThan(REQUESTS / 5);
  expect(await queueOn(name)).toEqual([]);
}, 120_000);

describe('a process with an identity', () => {
  test('takes the lock of its dead predecessor at once, with a greater token', async () => {
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

  test('is fenced off by a living twin, and told of the clash', async () => {
    const name = freshName();
    const first = start(IDENTIFIED, name);
    await untilHolding(name);
    const second = await useManager({ ttl: 60, identity: 'node-1' }).acquire(name);
    const lost = await toldBy<{ name: string; message: string; token: string }>(first);
    expect(lost).toMatchObject({
      name: 'EtcdLockLost',
      message: expect.stringContaining('another process have the identity "node-1"?'),
    });
    expect(second.fencingToken).toBeGreaterThan(BigInt(lost.token));
    expect(await queueOn(name)).toMatchObject([{ key: second.key }]);
    expect(await second.release()).toBe(true);
  });
});
