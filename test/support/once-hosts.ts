import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { type RunningScript, startScript } from './script.ts';
import { until } from './until.ts';

/** Seconds between two ticks by the clocks of the hosts. */
const EVERY = 10;
/** How many times faster than the real clock the hosts' clocks are. */
const RATE = 50;

/** A callback that has begun on a host. */
export interface TickRun {
  /** When the tick was due: milliseconds since the epoch. */
  readonly at: number;
  readonly missed: number | null;
  readonly previous: { readonly at: number; readonly state: string } | null;
  readonly token: bigint;
}

/** A host with a clock of its own. Its callback prints a line, takes some time, and prints another line. */
const HOST = `
  import { LockManager } from 'etcd-v2-lock';
  import { startOnce } from './dist/manager/once/scheduler.js';
  import { V2Client } from './dist/v2/client.js';
  import { V3Client } from './dist/v3/client.js';
  const { ETCD, API, NAME, ORIGIN, RATE, EVERY, AHEAD } = process.env;
  const clock = {
    now: () => Number(ORIGIN) + (Date.now() - Number(ORIGIN)) * Number(RATE) + Number(AHEAD) * 1000,
    after: (ms, fn) => {
      const timer = setTimeout(fn, ms / Number(RATE));
      return () => clearTimeout(timer);
    },
  };
  const client = new (API === 'v3' ? V3Client : V2Client)({ endpoints: ETCD });
  const locks = new LockManager(client);
  const manager = { store: client.store, defaults: {}, request: (...args) => locks.request(...args) };
  const errors = [];
  const report = ({ outcome, error }) => outcome === 'failed' && errors.push(String(error));
  const run = async ({ fencingToken }, { at, missed = null, previous }) => {
    const before = previous ? { at: previous.at.getTime(), state: previous.state } : null;
    console.log(JSON.stringify({ at: at.getTime(), missed, previous: before, token: String(fencingToken) }));
    await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 60));
    console.log('end');
  };
  const job = startOnce(manager, NAME, { every: EVERY + 's', ttl: 2, report }, run, clock);
  process.once('SIGTERM', () => job.stop());
  await job.stopped;
  await client.close();
`;

interface HostsOptions {
  readonly etcd: string;
  readonly api: 'v2' | 'v3';
  readonly name: string;
  /** Number of ticks that become due by a right clock. */
  readonly ticks: number;
  /** For each host, the seconds that its clock is ahead. */
  readonly ahead: readonly number[];
  /** How many times a host is killed in its callback and started again. */
  readonly kills: number;
  /** How many callbacks must begin at least. On a busy machine, this takes longer than the ticks. */
  readonly least: number;
}

interface Host extends Pick<RunningScript, 'process'> {
  /** What it has printed, once it has ended. */
  readonly output: Promise<string>;
}

/** Lets hosts run the ticks of a job, and kills some of them while they do. Returns the callbacks that have begun. */
export async function runOnHosts({ etcd, api, name, ticks, ahead, kills, least }: HostsOptions): Promise<TickRun[]> {
  const origin = Date.now();
  const printed: Promise<string>[] = [];
  let count = 0;
  const start = (seconds: number): Host => {
    const clock = { ORIGIN: String(origin), RATE: String(RATE), EVERY: String(EVERY), AHEAD: String(seconds) };
    const script = startScript(HOST, { ETCD: etcd, API: api, NAME: name, ...clock });
    onTestFinished(() => void script.process.kill('SIGKILL'));
    script.process.stdout.on('data', (chunk) => {
      count += String(chunk).split('}\n').length - 1;
    });
    const output = script.result.then(({ stdout, stderr }) => {
      expect(stderr).toBe('');
      return stdout;
    });
    printed.push(output);
    return { process: script.process, output };
  };
  const hosts = ahead.map(start);
  const whole = (ticks * EVERY * 1000) / RATE;
  for (let killed = 0; killed < kills; ) {
    await sleep(whole / (kills + 1));
    const index = await Promise.race(hosts.map((host, i) => once(host.process.stdout, 'data').then(() => i)));
    const victim = hosts[index];
    victim?.process.kill('SIGKILL');
    // On a busy machine, the callback may have ended in the meantime.
    if (!(await victim?.output)?.endsWith('end\n')) killed += 1;
    hosts[index] = start(ahead[index] ?? 0);
  }
  await sleep(whole / (kills + 1));
  await until(
    () => count,
    (runs) => runs >= least,
    { timeout: 120_000 },
  );
  for (const { process: child } of hosts) child.kill('SIGTERM');
  const lines = (await Promise.all(printed)).flatMap((text) => text.split('\n').filter((line) => line.endsWith('}')));
  return lines.map((line) => {
    const run = JSON.parse(line);
    return { ...run, token: BigInt(run.token) };
  });
}

/** Expects that no tick has run twice or after a later one, and that each run knows how many ticks nobody has begun before it. */
export function expectOncePerTick(runs: readonly TickRun[]): { missed: number; unfinished: number; lost: number } {
  const byToken = runs.toSorted((a, b) => (a.token < b.token ? -1 : 1));
  const times = byToken.map(({ at }) => at);
  expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
  const begun = new Set(times);
  let lost = 0;
  for (const [i, { at, missed, previous }] of byToken.entries()) {
    if (i === 0) continue;
    expect(missed).toBe((at - (previous?.at ?? 0)) / (EVERY * 1000) - 1);
    if (begun.has(previous?.at ?? 0)) expect(previous?.at).toBe(byToken[i - 1]?.at);
    else {
      // Its host was killed, or the next tick was due, between the record and the callback.
      expect(previous?.state).toBe('begun');
      lost += 1;
    }
  }
  const unfinished = byToken.filter(({ previous }) => previous?.state === 'begun').length - lost;
  return { missed: byToken.reduce((sum, { missed }) => sum + (missed ?? 0), 0), unfinished, lost };
}
