import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { ignore } from '../../../src/base/cancellation.ts';
import type { Finding } from '../../../src/cli/doctor/facts.ts';
import { judgeMove } from '../../../src/cli/doctor/moving/judge.ts';
import type { Kinds } from '../../../src/cli/doctor/moving/kinds.ts';
import { type WatchTimes, watchStores } from '../../../src/cli/doctor/moving/watch.ts';
import { EtcdClient, LockManager } from '../../../src/index.ts';
import { Bridge } from '../../../src/server/bridge/bridge.ts';
import { runCli } from '../../support/cli.ts';
import { type EtcdMember, startEtcd } from '../../support/etcd.ts';
import { freshName, raw, untilEntries, untilQueued } from '../../support/locks.ts';
import { startScript } from '../../support/script.ts';

let etcd: EtcdMember;

// Of their own: the command shows all locks.
beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());

/** Locks of a process of one kind, until the end of the test. */
function useLocks(api: 'v2' | 'both' | 'v3', label = `a client of ${api}`): LockManager {
  const client = new EtcdClient({ endpoints: etcd.url, api });
  onTestFinished(() => client.close());
  // Short: the renewals show who is at work.
  return new LockManager(client, { label, ttl: 6 });
}

async function hold(locks: LockManager, name: string): Promise<void> {
  const held = await locks.acquire(name);
  onTestFinished(async () => void (await held.release()));
}

/** Waits until the end of the test. */
async function wait(locks: LockManager, name: string): Promise<void> {
  const over = new AbortController();
  const waiting = locks.acquire(name, { signal: over.signal }).catch(() => {});
  onTestFinished(async () => {
    over.abort();
    await waiting;
  });
  await untilQueued(name, 2, etcd.url);
}

/** Takes the lock again and again until the end of the test. */
function work(locks: LockManager, name: string, ms = 0): void {
  const over = new AbortController();
  const working = (async () => {
    // A hold that is lost while the machine stalls does not matter.
    while (!over.signal.aborted) await locks.request(name, () => sleep(ms)).catch(ignore);
  })();
  onTestFinished(async () => {
    over.abort();
    await working;
  });
}

const doctor = (...flags: string[]) => runCli(['doctor', '--moving', ...flags], { ETCD_ENDPOINTS: etcd.url });

/** Watches as the command does, for a shorter time. Returns what it shows with --json. */
async function watch(times: WatchTimes = { atLeast: 600, atMost: 15_000 }) {
  const [v2, v3] = (['v2', 'v3'] as const).map((api) => new EtcdClient({ endpoints: etcd.url, api }));
  if (!v2 || !v3) throw new Error('no clients');
  try {
    const kinds = await watchStores(v2.surveyor, v3.surveyor, times);
    const findings = judgeMove(kinds);
    return { ...kinds, last: findings.at(-1) };
  } finally {
    await Promise.all([v2.close(), v3.close()]);
  }
}

test('in step 1, doctor --moving names who holds on v2 alone, and says that step 2 is not safe', async () => {
  const [one, other] = [freshName(), freshName()];
  await hold(useLocks('v2'), one);
  await hold(useLocks('both'), other);
  const [{ code, stdout, stderr }, { stdout: text }] = await Promise.all([doctor('--json'), doctor()]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({
    ok: true,
    v2: [{ name: one, client: 'a client of v2' }],
    both: [{ name: other, client: 'a client of both' }],
    either: [],
    v3: [],
  });
  expect(text).toContain(`ok    clients of kind v2 (hold on v2 alone): 1 ("${one}" by a client of v2)\n`);
  expect(text).toMatch(
    /warn {2}step 1, .* Step 2 is not safe: some clients still use v2 alone\n {8}-> restart these clients/,
  );
});

test('a client that only waits is of kind v2 or both, and makes step 2 unknown', async () => {
  const name = freshName();
  await hold(useLocks('both'), name);
  await wait(useLocks('both', 'a waiter'), name);
  const found = await watch({ atLeast: 300, atMost: 600 });
  expect(found).toMatchObject({ v2: [], both: [{ client: 'a client of both' }], either: [{ client: 'a waiter' }] });
  expect(found.last?.text).toMatch(/^it is not known whether step 2, from both to v3, is safe/);
});

test('between the steps, doctor --moving says that v2 is still used, and that idle clients are not seen', async () => {
  await hold(useLocks('both'), freshName());
  const { last } = await watch();
  expect(last?.text).toMatch(
    /^no client of kind v2 was seen: step 2, from both to v3, can begin once no idle one is left/,
  );
  expect(last?.advice).toContain('an idle client has no entry');
});

test('in step 2, doctor --moving says that it has begun', async () => {
  await hold(useLocks('both'), freshName());
  await hold(useLocks('v3'), freshName());
  const { stdout } = await doctor();
  expect(stdout).toMatch(/ok {4}clients of kind v3 \(entry on v3 alone\): 1 \(".*" by a client of v3\)\n/);
  expect(stdout).toMatch(/warn {2}step 2, from both to v3, has begun\. v2 is still used\n/);
});

test('in step 2, the entry of a killed waiter is not of kind v2, and is no failure', async () => {
  const name = freshName();
  await raw('POST', `/_locks/${name}`, { value: `${'0'.repeat(32)}@killed`, ttl: '60' }, etcd.url);
  onTestFinished(async () => void (await raw('DELETE', `/_locks/${name}?recursive=true`, undefined, etcd.url)));
  await hold(useLocks('v3'), name);
  const found = await watch({ atLeast: 300, atMost: 2500 });
  expect(found).toMatchObject({ v2: [], either: [{ client: 'killed' }], v3: [{ client: 'a client of v3' }] });
  expect(found.last).toMatchObject({ level: 'warn', text: expect.stringContaining('that may be of kind v2') });
});

test('after step 2, doctor --moving says that no lock has had an entry on v2', async () => {
  await hold(useLocks('v3'), freshName());
  const { code, stdout } = await doctor();
  expect(code).toBe(0);
  expect(stdout).toContain('ok    no listed lock has had an entry on v2 while this command watched');
});

const TORN = 'clients of kind v2 and of kind v3 use the same locks';

test('doctor --moving fails if clients of v2 and of v3 use the same lock', async () => {
  const name = freshName();
  await hold(useLocks('v2'), name);
  await hold(useLocks('v3'), name);
  const { code, stdout } = await doctor();
  expect(code).toBe(1);
  expect(stdout).toContain(`${TORN}: "${name}" by a client of v2`);
});

test.each(['_', 'a/_'])(
  'the same if the name of the lock begins with %j, so that v2 does not list it',
  async (start) => {
    const name = start + freshName();
    await hold(useLocks('v2'), name);
    await hold(useLocks('v3'), name);
    const { last } = await watch();
    expect(last).toMatchObject({
      level: 'fail',
      text: expect.stringContaining(`${TORN}: "${name}" by a client of v2`),
    });
  },
);

test('doctor --moving finds clients of v2 and of v3 at one lock of a hidden name that has no entry at first', async () => {
  const name = `_${freshName()}`;
  const watching = watch({ atLeast: 2000, atMost: 15_000 });
  work(useLocks('v2'), name, 50);
  work(useLocks('v3'), name, 50);
  expect((await watching).last).toMatchObject({ level: 'fail' });
});

test('a lock that is busy in step 2 is no failure, however often it is handed over', async () => {
  const name = freshName();
  for (const api of ['both', 'v3', 'both', 'v3'] as const) work(useLocks(api), name);
  const { code, stdout } = await doctor('--json');
  expect(code, stdout).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    ok: true,
    v2: [],
    both: [{ name, client: 'a client of both' }],
    either: [],
    v3: [{ name, client: 'a client of v3' }],
  });
});

/** A process that takes a lock again and again. */
const WORKER = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  const { ETCD: endpoints, API: api, PREFIX: lockPrefix, HOLD: hold } = process.env;
  const locks = new LockManager(new EtcdClient({ endpoints, api, lockPrefix }), { ttl: 60 });
  for (;;) await locks.request('job', () => sleep(Number(hold)));
`;

/** Processes that take one lock again and again, each time for `ms` milliseconds. Killed ones leave entries, so they have a prefix. */
class Workers {
  readonly prefix = `/_${freshName()}`;
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
  }

  /** Starts processes of one kind. Returns their labels. */
  start(api: 'v2' | 'both' | 'v3', count: number): string[] {
    const env = { ETCD: etcd.url, API: api, PREFIX: this.prefix, HOLD: String(this.#ms) };
    return Array.from({ length: count }, () => {
      const { process, result } = startScript(WORKER, env);
      onTestFinished(async () => {
        process.kill();
        await result;
      });
      return `${hostname()}:${process.pid}`;
    });
  }

  /** Waits until so many of them are in the queue on v2. */
  atWork = (count: number) => untilEntries(`${this.prefix}/job`, count, etcd.url);

  async doctor() {
    const { code, stdout } = await doctor('--json', '--lock-prefix', this.prefix);
    const { findings, ...kinds } = JSON.parse(stdout);
    const named = Object.entries(kinds as Kinds).flatMap(([kind, clients]) =>
      Array.isArray(clients) ? [[kind, clients.map(({ client }) => client).sort()]] : [],
    );
    return { code, kinds: Object.fromEntries(named), says: (findings as Finding[]).at(-1)?.text };
  }
}

test.each([50, 2500])(
  'doctor --moving fails if two processes of v2 and two of v3 hold one lock for %d ms each',
  async (ms) => {
    const workers = new Workers(ms);
    const [v2, v3] = [workers.start('v2', 2), workers.start('v3', 2)];
    await workers.atWork(2);
    expect(await workers.doctor()).toMatchObject({
      code: 1,
      kinds: { v2: v2.sort(), both: [], either: [], v3: v3.sort() },
    });
  },
);

test('one process that is left on v2 is found among processes of kind both', async () => {
  const workers = new Workers(200);
  const [v2, both] = [workers.start('v2', 1), workers.start('both', 3)];
  await workers.atWork(4);
  const { code, kinds, says } = await workers.doctor();
  expect({ code, kinds }).toEqual({ code: 0, kinds: { v2, both: both.sort(), either: [], v3: [] } });
  expect(says).toMatch(/Step 2 is not safe/);
});

test('doctor --moving refuses --ttl, which it would not use', async () => {
  const { code, stdout, stderr } = await doctor('--ttl', '15');
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toContain("option '--moving' cannot be used with option '--ttl <seconds>'");
});

test('doctor --moving counts clients of a bridge to both stores as kind both, also those that wait', async () => {
  const [bridge, name] = [await Bridge.start({ endpoints: etcd.url, api: 'both' }), freshName()];
  onTestFinished(() => bridge.stop());
  const useBridged = (label: string): LockManager => {
    const client = new EtcdClient({ endpoints: bridge.url });
    onTestFinished(() => client.close());
    return new LockManager(client, { label });
  };
  await hold(useBridged('a holder at a bridge'), name);
  await wait(useBridged('a waiter at a bridge'), name);
  expect(await watch()).toMatchObject({
    v2: [],
    both: [
      { name, client: 'a holder at a bridge' },
      { name, client: 'a waiter at a bridge' },
    ],
    either: [],
    v3: [],
  });
});
