import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { closedEndpoint } from '../../support/clients.ts';
import { diagnose, troubles } from '../../support/doctor.ts';
import { type EtcdCluster, type EtcdMember, startCluster, startEtcd } from '../../support/etcd.ts';
import { until } from '../../support/until.ts';

let cluster: EtcdCluster;
beforeAll(async () => {
  // No election, however busy the machine.
  cluster = await startCluster(3, { args: ['--election-timeout=5000'] });
}, 60_000);
afterEach(async () => {
  for (const member of cluster.members) {
    if (member.paused) member.resume();
    if (!member.running) await member.restart({ wait: false });
  }
  await Promise.all(cluster.members.map((member) => member.ready()));
}, 60_000);
afterAll(() => cluster.stop());

/** A TTL that tolerates the slow responses of a busy machine. */
const PATIENT = ['--ttl', '300'];
const matching = (text: RegExp) => expect.stringMatching(text);

async function followers(): Promise<[EtcdMember, EtcdMember]> {
  const leader = await cluster.leader();
  const [one, other] = cluster.members.filter((member) => member !== leader);
  if (!one || !other) throw new Error('a cluster has three members');
  return [one, other];
}

test('healthy members agree on cluster and leader, and their clocks are compared', async () => {
  const leader = await cluster.leader();
  const { code, endpoints, findings, ...others } = await diagnose(cluster.urls, PATIENT);
  expect(troubles({ findings }), JSON.stringify(others)).toEqual([]);
  expect(code).toBe(0);
  expect(new Set(endpoints.map(({ clusterId }) => clusterId)).size).toBe(1);
  expect(endpoints.map(({ leader: id }) => endpoints.find((member) => member.id === id)?.endpoint)).toEqual(
    cluster.urls.map(() => leader.url),
  );
  expect(endpoints.map(({ clock }) => clock?.by)).toEqual(cluster.urls.map(() => 'test key'));
  expect(findings).toContainEqual(
    expect.objectContaining({
      level: 'ok',
      about: 'clocks',
      text: matching(/differ by \d+\.\d+ s; the limit is 30/),
    }),
  );
});

test('a dead member is a warning, because locks work on the other members', async () => {
  const [dead] = await followers();
  await dead.kill();
  const diagnosis = await diagnose(cluster.urls, PATIENT);
  expect(diagnosis.code).toBe(0);
  expect(troubles(diagnosis)).toMatchObject([
    { level: 'warn', about: 'reachable', endpoint: dead.url, text: matching(/nothing listens at this address/) },
  ]);
});

test('a silent member is a warning, and does not delay the result', async () => {
  const [silent] = await followers();
  await silent.pause();
  const diagnosis = await diagnose(cluster.urls, PATIENT);
  expect(diagnosis.code).toBe(0);
  expect(troubles(diagnosis)).toMatchObject([
    {
      level: 'warn',
      about: 'reachable',
      endpoint: silent.url,
      text: 'the server does not respond: no answer within 5 s',
    },
  ]);
});

test('without a quorum locks are impossible, and the missing members are reported', async () => {
  const [first, second] = await followers();
  const left = await cluster.leader();
  await first.pause();
  await second.pause();
  await until(
    () => statusOfLeader(left.url),
    (status) => status === 503,
  );
  const diagnosis = await diagnose(cluster.urls);
  expect(diagnosis.code).toBe(1);
  expect(troubles(diagnosis)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ level: 'fail', about: 'reachable', endpoint: first.url }),
      expect.objectContaining({ level: 'fail', about: 'reachable', endpoint: second.url }),
      expect.objectContaining({
        level: 'fail',
        about: 'health',
        endpoint: left.url,
        text: matching(/no quorum.*unhealthy/),
        advice: matching(/more than half/),
      }),
      expect.objectContaining({ level: 'fail', about: 'leader', text: matching(/no leader/) }),
    ]),
  );
});

test('one member without the v2 API is a failure, because python-etcd does not skip it', async () => {
  const [without] = await followers();
  await without.restart({ wait: false, args: ['--enable-v2=false'] });
  try {
    await until(
      () => healthOf(without.url),
      (health) => health === 'true',
    );
    const diagnosis = await diagnose(cluster.urls, PATIENT);
    expect(diagnosis.code).toBe(1);
    expect(troubles(diagnosis)).toMatchObject([{ level: 'fail', about: 'v2', endpoint: without.url }]);
  } finally {
    await without.restart({ args: ['--enable-v2'] });
  }
});

test('unlisted members and duplicate endpoints are reported', async () => {
  const [first, second, third] = cluster.members as [EtcdMember, EtcdMember, EtcdMember];
  const again = first.url.replace('127.0.0.1', 'localhost');
  const diagnosis = await diagnose([first.url, first.url, again, second.url], PATIENT);
  expect(diagnosis.code).toBe(0);
  expect(troubles(diagnosis)).toMatchObject([
    { about: 'endpoints', text: `${first.url} is listed more than once` },
    { about: 'endpoints', text: `${first.url} and ${again} are the same member, m1` },
    { about: 'members', text: matching(/member m3 .*not in the list/), advice: matching(new RegExp(third.url)) },
  ]);
});

test('endpoints of two clusters are a failure', async () => {
  const stranger = await startEtcd();
  onTestFinished(() => stranger.stop());
  const diagnosis = await diagnose([...cluster.urls, stranger.url], PATIENT);
  expect(diagnosis.code).toBe(1);
  expect(troubles(diagnosis)).toMatchObject([{ level: 'fail', about: 'cluster-id', text: matching(/to 2 clusters/) }]);
});

test('a mixture of https and http is a warning, even if some endpoints cannot be reached', async () => {
  const tls = (await closedEndpoint()).replace('http:', 'https:');
  expect(troubles(await diagnose([...cluster.urls, tls], PATIENT))).toContainEqual(
    expect.objectContaining({ level: 'warn', about: 'endpoints', text: matching(/use TLS, but not http:/) }),
  );
});

const statusOfLeader = (url: string): Promise<number> => fetch(`${url}/v2/members/leader`).then(({ status }) => status);

const healthOf = (url: string): Promise<string | undefined> =>
  fetch(`${url}/health`)
    .then((answer) => answer.json() as Promise<{ health: string }>)
    .then(
      ({ health }) => health,
      () => undefined,
    );
