import { expect, test } from 'vitest';
import { built } from '../../../compat/peers/built.ts';
import { checkV2Store, NOTHING_FOUND } from '../../../compat/peers/check-v2-store.ts';
import { runCli } from '../../support/cli.ts';
import { until } from '../../support/until.ts';
import type { FaultCluster } from '../fault-cluster.ts';
import { type Moved, rehearse } from './rehearsal.ts';

const SNAPSHOTS = 50;
const SNAPSHOT_COUNT = `--snapshot-count=${SNAPSHOTS}`;

/** Follows the checklist of docs/moving.md, one member at a time. */
async function upgrade({ cluster, endBridgesToBoth, allHeldAnew }: Moved): Promise<void> {
  await endBridgesToBoth();
  for (const { etcd } of cluster.members) {
    await etcd.restart({ without: ['--enable-v2'], args: [SNAPSHOT_COUNT] });
    await allHeldAnew();
  }
  expect(await doctor(cluster)).toContain('start etcd 3.6 only where etcdutl check v2store finds nothing');
  // The first one begins a snapshot at the latest.
  for (const more of [SNAPSHOTS + 1, SNAPSHOTS]) await untilWritten(cluster, more);
  for (const { etcd } of cluster.members) {
    const whileStopped = () => expect(checkV2Store(etcd.dataDir)).toBe(NOTHING_FOUND);
    await etcd.restart({ program: built('3.6'), without: [SNAPSHOT_COUNT], whileStopped });
    await allHeldAnew();
    await doctor(cluster);
    // It would panic if anything in the log stopped it.
    await etcd.restart();
  }
  for (const { etcd } of cluster.members) expect(await etcd.version()).toMatch(/^3\.6\./);
  await allHeldAnew();
}

async function doctor(cluster: FaultCluster): Promise<string> {
  const endpoints = cluster.members.map(({ etcd }) => etcd.url).join(',');
  const { code, stdout } = await runCli(['doctor', '--api', 'v3', '--endpoints', endpoints]);
  expect(code, stdout).toBe(0);
  return stdout;
}

/** Resolves once the clients at work have made so many more writes, and each member has carried them out. */
async function untilWritten({ members }: FaultCluster, more: number): Promise<void> {
  const applied = () => Promise.all(members.map(({ etcd }) => appliedOn(etcd.url)));
  const goal = Math.max(...(await applied())) + more;
  await until(applied, (all) => all.every((index) => index >= goal), { every: 100 });
}

async function appliedOn(url: string): Promise<number> {
  const answer = await fetch(`${url}/v3/maintenance/status`, { method: 'POST', body: '{}' });
  return Number(((await answer.json()) as { raftAppliedIndex: string }).raftAppliedIndex);
}

test('clients move from v2 to v3, then the members to etcd 3.6, one at a time and while all work: no two hold together', async () => {
  const { overlaps, crashes, left } = await rehearse({
    steps: ['v2', 'both', 'v3'],
    crew: ['python', 'manager', 'lock'],
    after: upgrade,
  });
  expect(overlaps).toEqual([]);
  expect(crashes).toEqual([]);
  expect(left).toEqual([]);
}, 600_000);
