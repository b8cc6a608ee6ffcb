// What ui reports of a move from v2 to v3: a watch of some seconds.
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { ShownMove } from '../../../src/cli/ui/shapes.ts';
import { EtcdClient, LockManager } from '../../../src/index.ts';
import { runCli } from '../../support/cli.ts';
import { type EtcdMember, startEtcd } from '../../support/etcd.ts';
import { ask, startUi } from '../../support/ui.ts';

let etcd: EtcdMember;

// Of their own: all locks are watched.
beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());

/** Holds a lock until the end of the test, as a client of one kind. */
async function hold(api: 'v2' | 'both' | 'v3', name: string): Promise<void> {
  const client = new EtcdClient({ endpoints: etcd.url, api });
  const held = await new LockManager(client, { label: `a client of ${api}`, ttl: 6 }).acquire(name);
  onTestFinished(async () => {
    await held.release();
    await client.close();
  });
}

test('ui --api both reports what doctor --moving does, from one watch for all who ask', async () => {
  await hold('v2', 'one');
  await hold('both', 'two');
  const { line: url } = await startUi(['--api', 'both'], etcd.url);
  const [first, second] = await Promise.all([ask(`${url}/api/move`), ask(`${url}/api/move`)]);
  expect(first?.body).toBe(second?.body);
  const { clients, findings, took } = JSON.parse(first?.body ?? '') as ShownMove;
  expect(took).toBeGreaterThanOrEqual(5);
  expect(clients).toEqual({
    v2: { count: 1, uses: [{ lock: 'one', client: 'a client of v2' }] },
    both: { count: 1, uses: [{ lock: 'two', client: 'a client of both' }] },
    either: { count: 0, uses: [] },
    v3: { count: 0, uses: [] },
  });
  const { stdout } = await runCli(['doctor', '--moving', '--json', '--endpoints', etcd.url]);
  const own = (JSON.parse(stdout) as ShownMove).findings.map(({ level, text, advice }) => ({ level, text, advice }));
  expect(findings.map(({ level, text, advice }) => ({ level, text, advice: advice ?? undefined }))).toEqual(own);
  expect(own.at(-1)?.text).toContain('Step 2 is not safe');
});
