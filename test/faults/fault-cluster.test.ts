import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { until } from '../support/until.ts';
import { type FaultCluster, type FaultMember, startFaultCluster } from './fault-cluster.ts';

let cluster: FaultCluster;
beforeAll(async () => {
  cluster = await startFaultCluster();
});
afterAll(() => cluster.stop());

afterEach(async () => {
  for (const { etcd, proxy, rejoin } of cluster.members) {
    proxy.heal();
    rejoin();
    if (etcd.paused) etcd.resume();
    if (!etcd.running) await etcd.restart({ wait: false });
  }
  await Promise.all(cluster.members.map(({ etcd }) => etcd.ready()));
});

test('clients reach every member through its proxy, and etcd advertises the proxy URLs', async () => {
  const [first] = cluster.members as [FaultMember];
  const key = await write(first);
  for (const member of cluster.members) expect((await read(member, key, 'quorum=true')).value).toBe('1');
  expect(first.proxy.requests.map(({ method, path }) => `${method} ${path}`)).toContain(`PUT ${key}`);
  const machines = await (await fetch(`${first.url}/v2/machines`)).text();
  expect(machines.split(', ').sort()).toEqual([...cluster.urls].sort());
});

test('the others replace an isolated leader, which still serves plain reads and catches up after it has rejoined', async () => {
  const old = await cluster.leader();
  const key = await write(old);
  old.isolate();
  const successor = await cluster.leader();
  expect(successor).not.toBe(old);
  expect((await cluster.followers()).length).toBe(1);
  await write(successor, key, '2');
  expect((await read(successor, key, 'quorum=true')).value).toBe('2');
  expect((await read(old, key)).value).toBe('1');
  expect((await read(old, key, 'quorum=true')).status).toBe(500);
  old.rejoin();
  await until(
    () => read(old, key),
    ({ value }) => value === '2',
  );
  const later = await write(old);
  for (const member of cluster.members) expect((await read(member, later, 'quorum=true')).value).toBe('1');
});

test('the others keep a quorum without an isolated follower, which catches up after it has rejoined', async () => {
  const [isolated] = (await cluster.followers()) as [FaultMember];
  isolated.isolate();
  const key = await write(await cluster.leader());
  expect((await read(isolated, key, 'quorum=true')).status).toBe(500);
  expect((await read(isolated, key)).status).toBe(404);
  isolated.rejoin();
  await until(
    () => read(isolated, key),
    ({ value }) => value === '1',
  );
});

test('one of two isolated members can rejoin alone', async () => {
  const [first, second] = (await cluster.followers()) as [FaultMember, FaultMember];
  const third = await cluster.leader();
  first.isolate();
  second.isolate();
  expect((await read(third, '/v2/keys/', 'quorum=true')).status).toBe(500);
  second.rejoin();
  const key = await write(await cluster.leader());
  await until(
    () => read(second, key),
    ({ value }) => value === '1',
  );
  expect((await read(first, key)).status).toBe(404);
  expect(await cluster.followers()).not.toContain(first);
});

test('the others replace a leader that is killed or paused, and the old leader comes back with its data', async () => {
  for (const fault of ['kill', 'pause'] as const) {
    const old = await cluster.leader();
    const key = await write(old);
    await old.etcd[fault]();
    const successor = await cluster.leader();
    expect(successor).not.toBe(old);
    const later = await write(successor);
    if (fault === 'kill') await old.etcd.restart();
    else old.etcd.resume();
    expect((await read(old, key)).value).toBe('1');
    await until(
      () => read(old, later),
      ({ value }) => value === '1',
    );
  }
});

test('wipe() starts another cluster on the same URLs, with no member isolated', async () => {
  const [first, second] = cluster.members as [FaultMember, FaultMember];
  const key = await write(first);
  const urls = [...cluster.urls];
  const before = await clusterIds();
  second.isolate();
  await cluster.wipe();
  const after = await clusterIds();
  expect((await read(first, key, 'quorum=true')).status).toBe(404);
  expect((await read(second, await write(first), 'quorum=true')).value).toBe('1');
  expect(cluster.members.map(({ url }) => url)).toEqual(urls);
  expect([before.size, after.size]).toEqual([1, 1]);
  expect(after).not.toEqual(before);
});

/** Repeats the write until it succeeds: on a busy machine, the members may elect another leader at any time. */
async function write(member: FaultMember, path = `/v2/keys/${randomUUID()}`, value = '1'): Promise<string> {
  const body = new URLSearchParams({ value });
  await until(
    () => fetch(`${member.url}${path}`, { method: 'PUT', body }),
    ({ ok }) => ok,
  );
  return path;
}

async function read(member: FaultMember, path: string, query = '') {
  const answer = await fetch(`${member.url}${path}?${query}`);
  const { node } = (await answer.json()) as { node?: { value: string } };
  return { status: answer.status, value: node?.value };
}

async function clusterIds(): Promise<Set<string | null>> {
  const answers = await Promise.all(cluster.urls.map((url) => fetch(`${url}/v2/keys/`)));
  return new Set(answers.map((answer) => answer.headers.get('x-etcd-cluster-id')));
}
