import { expect, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../../src/server/index.ts';
import { connect } from '../support/clients.ts';
import { gateway } from '../support/gateway.ts';
import { RawConnection, request } from '../support/raw-connection.ts';

async function start(): Promise<EmbeddedEtcd> {
  const etcd = await EmbeddedEtcd.start();
  onTestFinished(() => etcd.stop());
  return etcd;
}

async function page({ url }: EmbeddedEtcd, path: string) {
  const client = await RawConnection.open(url);
  client.send(request('GET', path));
  const [answer] = await client.wholeAnswers(1);
  if (!answer) throw new Error('no answer');
  return answer;
}

const JSON_TYPE = { 'content-type': 'application/json' };
const ID = /^[0-9a-f]{16}$/;

test('/version is byte for byte the answer of etcd 3.4.23', async () => {
  const answer = await page(await start(), '/version');
  expect(answer).toMatchObject({ status: 200, headers: JSON_TYPE });
  expect(answer.body).toBe('{"etcdserver":"3.4.23","etcdcluster":"3.4.0"}');
  expect(answer.headers).not.toHaveProperty('x-etcd-cluster-id');
});

test('/health reports a healthy server as plain text', async () => {
  const answer = await page(await start(), '/health');
  expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' } });
  expect(answer.body).toBe('{"health":"true"}');
});

test('/v2/machines contains the URL of the server', async () => {
  const etcd = await start();
  const answer = await page(etcd, '/v2/machines');
  expect(answer).toMatchObject({
    status: 200,
    headers: { 'content-type': 'text/plain; charset=utf-8' },
    body: etcd.url,
  });
});

test('/v2/members lists one member, and /v2/members/leader is the same member', async () => {
  const etcd = await start();
  const [members, leader] = [await page(etcd, '/v2/members'), await page(etcd, '/v2/members/leader')];
  expect(members.body).toMatch(/^\{"members":\[\{"id":.*\}\]\}\n$/);
  const member = { id: expect.stringMatching(ID), name: 'embedded', peerURLs: [], clientURLs: [etcd.url] };
  expect(JSON.parse(members.body)).toEqual({ members: [member] });
  expect(leader.body).toMatch(/^\{"id":.*\}\n$/);
  expect(JSON.parse(leader.body)).toEqual(JSON.parse(members.body).members[0]);
  for (const { status, headers } of [members, leader]) {
    expect([status, headers]).toEqual([200, expect.objectContaining(JSON_TYPE)]);
    expect(headers['x-etcd-cluster-id']).toMatch(ID);
  }
});

test('the member list of v3 has one member, whose peer URL is that for clients', async () => {
  const { url } = await start();
  const { members } = await gateway('/cluster/member/list', {}, url);
  expect(members).toEqual([
    { ID: expect.stringMatching(/^\d+$/), name: 'embedded', peerURLs: [url], clientURLs: [url] },
  ]);
});

test('every page with a cluster id and every answer about keys has the same cluster id', async () => {
  const etcd = await start();
  const paths = ['/v2/members', '/v2/members/leader', '/v2/keys', '/v2/keys/missing', '/v2/keys?wait=maybe'];
  const answers = await Promise.all(paths.map((path) => page(etcd, path)));
  expect(new Set(answers.map(({ headers }) => headers['x-etcd-cluster-id'])).size).toBe(1);
});

test('/v2/stats/self describes a leader, and /v2/stats/leader has no followers', async () => {
  const etcd = await start();
  const { members } = JSON.parse((await page(etcd, '/v2/members')).body);
  const { id } = members[0];
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  const self = await page(etcd, '/v2/stats/self');
  expect(self).toMatchObject({ status: 200, headers: JSON_TYPE });
  expect(JSON.parse(self.body)).toEqual({
    name: 'embedded',
    id,
    state: 'StateLeader',
    startTime: time,
    leaderInfo: { leader: id, uptime: expect.stringMatching(/^\d+(\.\d+)?s$/), startTime: time },
    recvAppendRequestCnt: 0,
    sendAppendRequestCnt: 0,
  });
  const leader = await page(etcd, '/v2/stats/leader');
  expect(leader).toMatchObject({
    status: 200,
    headers: JSON_TYPE,
    body: JSON.stringify({ leader: id, followers: {} }),
  });
});

test('the client of this package understands the pages', async () => {
  const etcd = await start();
  const client = connect({ endpoints: etcd.url });
  expect(await client.version()).toMatchObject({ server: '3.4.23', cluster: '3.4.0' });
  expect(await client.machines()).toEqual([etcd.url]);
  expect(await client.members()).toMatchObject([{ name: 'embedded', clientURLs: [etcd.url] }]);
});

test.each([
  ['/v2/machines', 200],
  ['/v2/keys', 200],
  ['/v2/keys/missing', 404],
  ['/v2/keys?wait=true', 400],
  ['/version', 405],
  ['/health', 405],
  ['/v2/members', 405],
  ['/v2/stats/self', 405],
  ['/nowhere', 404],
])('HEAD %s gets %i and a Content-Length, but no body', async (path, status) => {
  const etcd = await start();
  const client = await RawConnection.open(etcd.url);
  client.send(request('HEAD', path, { headers: 'Connection: close\r\n' }));
  const text = await client.closed();
  expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(text).toMatch(/\r\nContent-Length: [1-9]\d*\r\n/);
  expect(text).toMatch(/\r\n\r\n$/);
});

test.each([
  ['/v2//machines', '/v2/machines'],
  ['/v2/x/../members', '/v2/members'],
  ['//version', '/version'],
  ['/./health?x=1', '/health?x=1'],
])('%s redirects to %s', async (path, proper) => {
  const answer = await page(await start(), path);
  expect(answer).toMatchObject({ status: 301, headers: { location: proper } });
});
