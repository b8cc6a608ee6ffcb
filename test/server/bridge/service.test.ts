// What a bridge offers to those who operate it: readiness, metrics, a log, and limits.
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, inject, onTestFinished, test } from 'vitest';
import { Bridge } from '../../../src/server/bridge/bridge.ts';
import type { BridgeRecord } from '../../../src/server/bridge/records.ts';
import { serve } from '../../support/clients.ts';
import { startEtcd } from '../../support/etcd.ts';
import { flow } from '../../support/flows.ts';
import { gate } from '../../support/gate.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import { poll, RawConnection, request } from '../../support/raw-connection.ts';
import { now } from '../../support/stalls/stalls.mjs';
import { httpAnswer } from '../../support/tcp-server.ts';
import { until } from '../../support/until.ts';
import { expectEndedPollsAreNoErrors } from './ended-polls.ts';
import { health, metricsOf } from './pages.ts';
import { useBridge, useKeys } from './use-bridge.ts';

test('a bridge is healthy while a majority of etcd answers, and says so in its log when that changes', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const records: BridgeRecord[] = [];
  const bridge = await useBridge({ endpoints: etcd.url, log: (record) => records.push(record) });
  expect(await health(bridge)).toEqual([200, '{"health":"true"}']);
  await etcd.stop();
  expect(await health(bridge)).toEqual([503, '{"health":"false"}']);
  await etcd.restart();
  await until(
    () => health(bridge),
    ([status]) => status === 200,
  );
  expect(records.filter(({ event }) => event.startsWith('etcd'))).toEqual([
    { event: 'etcd reachable' },
    { event: 'etcd unreachable', error: expect.stringContaining(etcd.url) },
    { event: 'etcd reachable' },
  ]);
});

test('a request that etcd does not answer is in the log, and so is that etcd is unreachable', async () => {
  const proxy = await useProxy();
  const records: BridgeRecord[] = [];
  const bridge = await useBridge({ endpoints: proxy.url, log: (record) => records.push(record) });
  const answers = proxy.intercept(() => ({ refuse: true }));
  expect((await fetch(`${bridge.url}/v2/keys/_locks/x`)).status).toBe(500);
  answers();
  expect((await fetch(`${bridge.url}/v2/keys/_locks/x`)).status).toBe(200);
  expect(records).toEqual([
    expect.objectContaining({ event: 'listening' }),
    { event: 'etcd unreachable', error: expect.stringContaining(proxy.url) },
    expect.objectContaining({ event: 'request', status: 500, code: 300, error: expect.stringContaining(proxy.url) }),
    { event: 'etcd reachable' },
    expect.objectContaining({ event: 'request', status: 200 }),
  ]);
});

test('a client that hangs up, or that the bridge refuses, does not make a silent etcd reachable', async () => {
  const proxy = await useProxy();
  const records: BridgeRecord[] = [];
  const log = (record: BridgeRecord) => records.push(record);
  const bridge = await useBridge({ endpoints: proxy.url, maxPolls: 1, metrics: true, log });
  proxy.intercept(() => ({ silent: true }));
  expect(await health(bridge)).toEqual([503, '{"health":"false"}']);
  const clients = [await RawConnection.open(bridge.url), await RawConnection.open(bridge.url)];
  clients[0]?.send(request('POST', '/v2/keys/_locks/x', { form: 'value=v' }));
  clients[1]?.send(poll('/_locks/x'));
  await until(
    () => metricsOf(bridge),
    ({ open_polls: polls }) => polls === 1,
  );
  expect((await fetch(`${bridge.url}/v2/keys/_locks/x?wait=true`)).status).toBe(503);
  expect(await (await fetch(`${bridge.url}/v2/keys/elsewhere`)).json()).toMatchObject({ errorCode: 107 });
  const tooLong = { method: 'POST', body: new URLSearchParams({ value: 'v', ttl: '9000000000' }) };
  expect(await (await fetch(`${bridge.url}/v2/keys/_locks/x`, tooLong)).json()).toMatchObject({ errorCode: 202 });
  for (const client of clients) client.hangUp();
  await until(
    () => records,
    (all) => all.filter(({ path }) => path?.startsWith('/v2/keys')).length === 5,
  );
  expect(records.filter(({ event }) => event.startsWith('etcd'))).toMatchObject([{ event: 'etcd unreachable' }]);
});

test('a poll that its client ends is no error', () => expectEndedPollsAreNoErrors());

test('a bridge does not start on an etcd that is too old', async () => {
  const etcd = await serve((socket) => void socket.write(httpAnswer(200, {}, '{"etcdserver":"3.2.32"}')));
  expect(await rejection(Bridge.start({ endpoints: etcd.url }))).toMatchObject({
    code: 'ETCD_UNUSABLE_ANSWER',
    message: `${etcd.url}: etcd "3.2.32" is too old: api "v3" needs etcd 3.3 or later`,
  });
});

test('a bridge starts while etcd is down, and serves once it is up', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  await etcd.stop();
  const bridge = await useBridge({ endpoints: etcd.url });
  expect(await health(bridge)).toEqual([503, '{"health":"false"}']);
  await etcd.restart();
  await until(
    () => health(bridge),
    ([status]) => status === 200,
  );
});

test('a page that is not of etcd makes a bridge unhealthy', async () => {
  const proxy = await useProxy();
  const bridge = await useBridge({ endpoints: proxy.url, metrics: true });
  proxy.intercept(() => ({ late: new Promise(() => {}), status: 200, body: 'Welcome' }));
  expect(await health(bridge)).toEqual([503, '{"health":"false"}']);
  expect(await metricsOf(bridge)).toMatchObject({ etcd_reachable: 0 });
});

test('a silent etcd makes a bridge unhealthy within seconds, and checks at the same time are one', async () => {
  const proxy = await useProxy();
  const bridge = await useBridge({ endpoints: proxy.url });
  expect(await health(bridge)).toEqual([200, '{"health":"true"}']);
  const before = proxy.requests.length;
  proxy.intercept(() => ({ silent: true }));
  const answers = await Promise.all(Array.from({ length: 20 }, () => health(bridge)));
  expect(answers).toEqual(Array.from({ length: 20 }, () => [503, '{"health":"false"}']));
  // Each member is asked again while it is silent, but not once for each check.
  expect(proxy.requests.length - before).toBeLessThan(20);
});

test('the metrics count requests, errors, polls, connections and leases', async () => {
  const bridge = await useBridge({ metrics: true });
  const keys = useKeys(bridge);
  const dir = `/_locks/${freshName()}`;
  const { node } = await keys.createInOrder(dir, 'value', { ttl: 30 });
  const ended = new AbortController();
  const waiting = keys.watch(node.key, { after: node.modifiedIndex, signal: ended.signal });
  await until(
    () => metricsOf(bridge),
    ({ open_polls: polls }) => polls === 1,
  );
  await rejection(keys.get(`${dir}/00000000000000000001`));
  await keys.delete(node.key);
  await waiting;
  const metrics = await until(
    () => metricsOf(bridge),
    ({ open_polls: polls }) => polls === 0,
  );
  expect(metrics).toMatchObject({
    'requests_total{call="createInOrder",status="201"}': 1,
    'requests_total{call="delete",status="200"}': 1,
    'requests_total{call="get",status="404"}': 1,
    'requests_total{call="watch",status="200"}': 1,
    'errors_total{code="100"}': 1,
    'request_duration_seconds_bucket{call="delete",le="+Inf"}': 1,
    'request_duration_seconds_count{call="delete"}': 1,
    etcd_reachable: 1,
    leases_granted_total: 1,
    leases_ended_total: 0,
  });
  expect(metrics['connections']).toBeGreaterThan(0);
});

test('metrics are served only if they are asked for', async () => {
  const { status } = await fetch(`${(await useBridge()).url}/metrics`);
  expect(status).toBe(404);
});

test('the log has each request, without values', async () => {
  const records: BridgeRecord[] = [];
  const bridge = await Bridge.start({ endpoints: inject('etcd'), log: (record) => records.push(record) });
  const keys = useKeys(bridge);
  const dir = `/_locks/${freshName()}`;
  const { node } = await keys.createInOrder(dir, 'a secret', { ttl: 30 });
  await rejection(keys.delete(node.key, { prevValue: 'another secret' }));
  await keys.delete(node.key);
  await bridge.stop();
  expect(records).toEqual([
    { event: 'listening', url: bridge.url },
    { event: 'etcd reachable' },
    expect.objectContaining({ event: 'request', method: 'POST', path: `/v2/keys${dir}`, status: 201 }),
    expect.objectContaining({ event: 'request', method: 'DELETE', status: 412, code: 101, client: '127.0.0.1' }),
    expect.objectContaining({ event: 'request', method: 'DELETE', path: `/v2/keys${node.key}`, status: 200 }),
    { event: 'stopping' },
    { event: 'stopped' },
  ]);
  expect(JSON.stringify(records)).not.toContain('secret');
});

test('the log runs in the async context in which the bridge was started', async () => {
  const flows: (readonly [event: string, flow: string | undefined])[] = [];
  const log = ({ event }: BridgeRecord) => flows.push([event, flow.getStore()]);
  const bridge = await flow.run('start', () => Bridge.start({ endpoints: inject('etcd'), log }));
  await flow.run('check', () => health(bridge));
  await flow.run('stop', () => bridge.stop());
  const events = ['listening', 'etcd reachable', 'request', 'stopping', 'stopped'];
  expect(flows).toEqual(events.map((event) => [event, 'start']));
});

test('polls beyond the limit are refused, and others are served when one ends', async () => {
  const bridge = await useBridge({ maxPolls: 2 });
  const first = await RawConnection.open(bridge.url);
  const second = await RawConnection.open(bridge.url);
  first.send(poll('/_locks/x'));
  second.send(poll('/_locks/x'));
  await Promise.all([first.begun(1), second.begun(1)]);
  const asked = now();
  const refused = await fetch(`${bridge.url}/v2/keys/_locks/x?wait=true`);
  // python-etcd asks again at once.
  expect(now() - asked).toBeGreaterThan(990);
  expect([refused.status, await refused.text()]).toEqual([
    503,
    '503 Service Unavailable: limit of 2 open long polls reached: retry later, or use another server\n',
  ]);
  first.hangUp();
  const free = await until(
    () => fetch(`${bridge.url}/v2/keys/_locks/x?wait=true`),
    ({ status }) => status === 200,
  );
  await free.body?.cancel();
});

test('a bridge that stops cuts off polls that it has not begun to answer', async () => {
  const [proxy, name, answered] = [await useProxy(), freshName(), gate()];
  const bridge = await useBridge({ endpoints: proxy.url, maxPolls: 1 });
  const [open, refused, busy] = await Promise.all([1, 2, 3].map(() => RawConnection.open(bridge.url)));
  if (!open || !refused || !busy) throw new Error('no connections');
  await open.send(poll(`/_locks/${name}`)).begun(1);
  proxy.intercept(() => ({ answerAfter: answered.opened }));
  const arrived = proxy.next(() => true, 'arrived');
  // The poll comes after the stop: its turn is after the answer to the request before it.
  busy.send(request('GET', `/v2/keys/_locks/${name}`) + poll(`/_locks/${name}`));
  await arrived;
  refused.send(poll(`/_locks/${name}`));
  const stopped = bridge.stop();
  answered.open();
  await Promise.all([refused.closed(), busy.closed()]);
  expect(refused.answers).toEqual([]);
  expect(busy.answers).toMatchObject([{ status: 200 }]);
  await stopped;
});

test('connections beyond the limit are closed', async () => {
  const bridge = await useBridge({ maxConnections: 1 });
  const first = await RawConnection.open(bridge.url);
  const { port } = new URL(bridge.url);
  await once(
    connect(Number(port), '127.0.0.1').on('error', () => {}),
    'close',
  );
  first.send(request('GET', '/version'));
  await first.wholeAnswers(1);
  first.hangUp();
});

test('headers longer than any lock needs are refused', async () => {
  const bridge = await useBridge();
  const connection = await RawConnection.open(bridge.url);
  connection.send(request('GET', '/version', { headers: `X-Long: ${'x'.repeat(20_000)}\r\n` }));
  await connection.wholeAnswers(1);
  expect(connection.answers[0]?.status).toBe(431);
  connection.hangUp();
});

test.each([
  [{ maxPolls: 0 }, 'maxPolls must be an integer ≥ 1, got 0'],
  [{ maxConnections: 1.5 }, 'maxConnections must be an integer ≥ 1, got 1.5'],
  [{ metrics: 'yes' }, 'metrics must be a boolean, got "yes"'],
  [{ log: true }, 'log must be a function, got true'],
])('the invalid option %j is refused', async (options, message) => {
  expect(await rejection(Bridge.start(options as never))).toHaveProperty('message', message);
});
