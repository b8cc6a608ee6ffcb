import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { Bridge } from '../../src/server/bridge/bridge.ts';
import { runCli } from '../support/cli.ts';
import { type EtcdMember, startEtcd } from '../support/etcd.ts';
import { freshName, untilQueued } from '../support/locks.ts';

let etcd: EtcdMember;

// Of their own: the command shows all locks.
beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());

/** Locks of a client of one kind, until the end of the test. */
function useLocks(api: 'v2' | 'both' | 'v3'): LockManager {
  const client = new EtcdClient({ endpoints: etcd.url, api });
  onTestFinished(() => client.close());
  return new LockManager(client, { label: `a client of ${api}` });
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

const doctor = (...flags: string[]) => runCli(['doctor', '--moving', ...flags], { ETCD_ENDPOINTS: etcd.url });

test('in step 1, doctor --moving names who holds on v2 alone, and says that step 2 is not safe', async () => {
  const [one, other] = [freshName(), freshName()];
  await hold(useLocks('v2'), one);
  await hold(useLocks('both'), other);
  await wait(useLocks('both'), one);
  const { code, stdout, stderr } = await doctor('--json');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({
    ok: true,
    v2: [{ name: one, client: 'a client of v2' }],
    both: [{ name: other, client: 'a client of both' }],
    either: [{ name: one, client: 'a client of both' }],
    v3: [],
  });
  const { stdout: text } = await doctor();
  expect(text).toContain(`ok    clients of kind v2 (hold on v2 alone): 1 ("${one}" by a client of v2)\n`);
  expect(text).toMatch(
    /warn {2}step 1, .* Step 2 is not safe: some clients still use v2 alone\n {8}-> restart these clients/,
  );
});

test('between the steps, doctor --moving says that v2 is still used, and that idle clients are not seen', async () => {
  await hold(useLocks('both'), freshName());
  const { code, stdout } = await doctor();
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /warn {2}step 2, from both to v3, is safe if no client uses v2 alone any more\. v2 is still used\n/,
  );
  expect(stdout).toContain('-> an idle client has no entry');
});

test('in step 2, doctor --moving says that it has begun', async () => {
  await hold(useLocks('both'), freshName());
  await hold(useLocks('v3'), freshName());
  const { stdout } = await doctor();
  expect(stdout).toMatch(/ok {4}clients of kind v3 \(entry on v3 alone\): 1 \(".*" by a client of v3\)\n/);
  expect(stdout).toMatch(/warn {2}step 2, from both to v3, has begun\. v2 is still used\n/);
});

test('after step 2, doctor --moving says that no lock has an entry on v2', async () => {
  await hold(useLocks('v3'), freshName());
  const { code, stdout } = await doctor();
  expect(code).toBe(0);
  expect(stdout).toContain('ok    no listed lock has an entry on v2 at the moment');
});

test.each(['', '_', 'a/_'])(
  'doctor --moving fails if clients of v2 and of v3 use the same lock, whose name begins with %j',
  async (start) => {
    const name = start + freshName();
    await hold(useLocks('v2'), name);
    await hold(useLocks('v3'), name);
    const { code, stdout } = await doctor();
    expect(code).toBe(1);
    expect(stdout).toContain(`clients of kind v2 and of kind v3 use the same locks: "${name}" by a client of v2`);
  },
);

test('a lock that is busy in step 2 is no failure, however often it is handed over', async () => {
  const name = freshName();
  const over = new AbortController();
  const work = (['both', 'v3', 'both', 'v3'] as const).map(async (api) => {
    const locks = useLocks(api);
    while (!over.signal.aborted) await locks.request(name, () => {});
  });
  const { code, stdout } = await doctor('--json');
  over.abort();
  await Promise.all(work);
  expect(code, stdout).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, v2: [], v3: [] });
});

test('doctor --moving refuses --ttl, which it would not use', async () => {
  const { code, stdout, stderr } = await doctor('--ttl', '15');
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toContain("option '--moving' cannot be used with option '--ttl <seconds>'");
});

test('doctor --moving counts clients of a bridge to both stores as kind both, also those that wait', async () => {
  const [bridge, name] = [await Bridge.start({ endpoints: etcd.url, api: 'both' }), freshName()];
  onTestFinished(() => bridge.stop());
  const useBridged = (): LockManager => {
    const client = new EtcdClient({ endpoints: bridge.url });
    onTestFinished(() => client.close());
    return new LockManager(client, { label: 'a client of a bridge' });
  };
  await hold(useBridged(), name);
  await wait(useBridged(), name);
  const { code, stdout } = await doctor('--json');
  expect(code).toBe(0);
  const entry = { name, client: expect.stringContaining('a client of a bridge') };
  expect(JSON.parse(stdout)).toMatchObject({ v2: [], both: [entry, entry], either: [], v3: [] });
});
