import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { expect, inject, onTestFinished, test } from 'vitest';
import type { Election } from '../../src/manager/election/election.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { startTcpProxy } from '../faults/tcp-proxy.ts';
import { lockByEtcdctl } from '../support/etcdctl.mjs';
import { entriesBelow } from '../support/gateway.ts';
import { next, untilFinished } from '../support/iterators.ts';
import { freshName } from '../support/locks.ts';
import { until } from '../support/until.ts';

function useElection(name: string): Election {
  const client = new V3Client({ endpoints: inject('etcd') });
  onTestFinished(() => client.close());
  return new LockManager(client).elect(name, { value: 'node' });
}

/** Starts `etcdctl elect`; the end of the test kills it. */
function electByEtcdctl(...args: readonly string[]) {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'etcdctl', 'elect', ...args], {
    env: { ...process.env, ETCDCTL_API: '3', ETCDCTL_ENDPOINTS: inject('etcd') },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** Resolves when `etcdctl elect` has printed that it leads. A SIGINT before that makes it end without removing its key. */
const printsLeader = ({ stdout }: ChildProcessByStdio<null, Readable, null>) => once(stdout, 'data');

test('a holder by `etcdctl lock`, which is Go’s Mutex, is a leader without a value', async () => {
  const name = freshName();
  const election = useElection(name);
  const go = lockByEtcdctl(`/_locks/${name}`, { endpoints: [inject('etcd')], ttl: 10 });
  onTestFinished(() => go.kill());
  const { key, token } = await go.held;
  const leaders = election.observe({ signal: untilFinished() });
  const leader = { name, key, uuid: '', identity: undefined, label: undefined, value: undefined, own: false };
  expect(await next(leaders)).toEqual(leader);
  expect(await election.leader()).toEqual(leader);
  const campaign = election.campaign();
  const elected = next(campaign);
  await go.release();
  expect((await elected).fencingToken).toBeGreaterThan(token);
  // If Go released the lock before this process had queued up, nobody led in between.
  expect((await next(leaders)) ?? (await next(leaders))).toMatchObject({ value: 'node', own: true });
  await campaign.return();
  expect(await election.leader()).toBeUndefined();
});

test('observers and `leader()` do not wait for answers about leases', async () => {
  const name = freshName();
  const proxy = await startTcpProxy(inject('etcd'));
  onTestFinished(() => proxy.stop());
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close());
  const election = new LockManager(client).elect(name);
  const leaders = election.observe({ signal: untilFinished() });
  expect(await next(leaders)).toBeUndefined();
  const campaign = useElection(name).campaign();
  await next(campaign);
  expect(await next(leaders)).toMatchObject({ value: 'node' });
  expect(await election.leader()).toMatchObject({ value: 'node' });
  expect(proxy.requests.filter(({ path }) => path.endsWith('/lease/timetolive'))).toEqual([]);
  await campaign.return();
});

test('`etcdctl elect`, which is Go’s Election, takes turns with a candidate, and each shows the other’s value', async () => {
  const name = freshName();
  const election = useElection(name);
  const queued = (count: number) =>
    until(
      () => entriesBelow(`/_locks/${name}/`),
      ({ length }) => length === count,
    );
  const go = electByEtcdctl(`/_locks/${name}`, 'proposal');
  const goLeads = printsLeader(go);
  await queued(1);
  expect(await election.leader()).toMatchObject({ uuid: 'proposal', value: undefined, label: undefined, own: false });
  const campaign = election.campaign();
  const elected = next(campaign);
  await queued(2);
  await goLeads;
  go.kill('SIGINT');
  const { key, uuid } = await elected;
  const observer = electByEtcdctl('--listen', `/_locks/${name}`);
  let printed = '';
  observer.stdout.on('data', (chunk) => {
    printed += chunk;
  });
  await until(
    () => printed,
    (text) => new RegExp(`^${key}\n${uuid}@.*@node\n`).test(text),
  );
  const other = electByEtcdctl(`/_locks/${name}`, 'proposal');
  const otherLeads = printsLeader(other);
  await queued(2);
  await campaign.return();
  expect(await election.leader()).toMatchObject({ uuid: 'proposal' });
  await otherLeads;
  other.kill('SIGINT');
  await queued(0);
});
