import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { diagnose, ownTroubles } from '../../support/doctor.ts';
import { type EtcdCluster, type EtcdMember, startCluster } from '../../support/etcd.ts';
import { gateway } from '../../support/gateway.ts';
import { until } from '../../support/until.ts';

let cluster: EtcdCluster;
beforeAll(async () => {
  // No election, however busy the machine.
  cluster = await startCluster(3, { args: ['--election-timeout=5000'] });
}, 60_000);
afterEach(async () => {
  for (const member of cluster.members) if (member.paused) member.resume();
  await Promise.all(cluster.members.map((member) => member.ready()));
}, 60_000);
afterAll(() => cluster.stop());

/** The TTL tolerates the slow responses of a busy machine. */
const ARGS = ['--api', 'v3', '--ttl', '300'];
const matching = (text: RegExp) => expect.stringMatching(text);

async function followers(): Promise<[EtcdMember, EtcdMember]> {
  const leader = await cluster.leader();
  const [one, other] = cluster.members.filter((member) => member !== leader);
  if (!one || !other) throw new Error('a cluster has three members');
  return [one, other];
}

test('healthy members agree on cluster and leader', async () => {
  const leader = await cluster.leader();
  const diagnosis = await diagnose(cluster.urls, ARGS);
  const { endpoints } = diagnosis;
  expect(ownTroubles(diagnosis)).toEqual([]);
  expect(diagnosis.code).toBe(0);
  expect(new Set(endpoints.map(({ clusterId }) => clusterId)).size).toBe(1);
  expect(endpoints.map(({ leader: id }) => endpoints.find((member) => member.id === id)?.endpoint)).toEqual(
    cluster.urls.map(() => leader.url),
  );
});

test('a stopped member is a warning, because locks work on the other members', async () => {
  const [silent] = await followers();
  await silent.pause();
  const diagnosis = await diagnose(cluster.urls, ARGS);
  expect(diagnosis.code).toBe(0);
  expect(ownTroubles(diagnosis)).toMatchObject([
    { level: 'warn', about: 'reachable', endpoint: silent.url, text: matching(/^the server does not respond/) },
  ]);
});

test('without a quorum locks are impossible, and the missing leader is reported', async () => {
  const [first, second] = await followers();
  const left = await cluster.leader();
  await first.pause();
  await second.pause();
  await until(
    () => gateway('/maintenance/status', {}, left.url),
    (status) => !('leader' in status),
  );
  const diagnosis = await diagnose(cluster.urls, ARGS);
  expect(diagnosis.code).toBe(1);
  const expected = [
    expect.objectContaining({
      level: 'fail',
      about: 'health',
      endpoint: left.url,
      text: matching(/^no quorum: a linearizable read failed.*no leader.*unhealthy/),
      advice: matching(/more than half/),
    }),
    expect.objectContaining({ level: 'fail', about: 'reachable', endpoint: first.url }),
    expect.objectContaining({ level: 'fail', about: 'reachable', endpoint: second.url }),
    expect.objectContaining({ level: 'fail', about: 'leader', text: matching(/no leader/) }),
  ];
  expect(ownTroubles(diagnosis)).toEqual(expect.arrayContaining(expected));
  expect(ownTroubles(diagnosis)).toHaveLength(expected.length);
});

test('unlisted members and duplicate endpoints are reported', async () => {
  const [first, second, third] = cluster.members as [EtcdMember, EtcdMember, EtcdMember];
  const again = first.url.replace('127.0.0.1', 'localhost');
  const diagnosis = await diagnose([first.url, first.url, again, second.url], ARGS);
  expect(diagnosis.code).toBe(0);
  expect(ownTroubles(diagnosis)).toMatchObject([
    { about: 'endpoints', text: `${first.url} is listed more than once` },
    { about: 'endpoints', text: `${first.url} and ${again} are the same member, m1` },
    { about: 'members', text: matching(/member m3 .*not in the list/), advice: matching(new RegExp(third.url)) },
  ]);
});
