import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { EtcdConnectionFailed } from '../../src/errors.ts';
import { EmbeddedEtcd } from '../../src/server/index.ts';
import { connect, rejection } from '../support/clients.ts';
import { gate } from '../support/gate.ts';
import { get, put, RawConnection, request } from '../support/raw-connection.ts';
import { runScript } from '../support/script.ts';
import { until } from '../support/until.ts';
import { FRONTS } from './fronts.ts';

async function start(): Promise<EmbeddedEtcd> {
  const etcd = await EmbeddedEtcd.start();
  onTestFinished(() => etcd.stop());
  return etcd;
}

const portOf = ({ url }: EmbeddedEtcd): number => Number(new URL(url).port);

/** Fails if any server listens on the port. */
async function expectFree(port: number): Promise<void> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}

test('the port is free after stop', async () => {
  const etcd = await start();
  const client = await RawConnection.open(etcd.url);
  client.send(get('/'));
  await client.wholeAnswers(1);
  await etcd.stop();
  await expectFree(portOf(etcd));
  await expect(RawConnection.open(etcd.url)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test('a server without any connection can be stopped', async () => {
  const etcd = await start();
  await etcd.stop();
  await expectFree(portOf(etcd));
});

test.each(FRONTS)('on %s, stop cuts off every wait before the end of its body', async (_name, api) => {
  const etcd = await start();
  const clients = await Promise.all(Array.from({ length: 100 }, () => RawConnection.open(etcd.url)));
  for (const [i, client] of clients.entries()) client.send(api.wait(i % 2 === 0 ? '/k' : `/k/${i}`));
  await Promise.all(clients.map((client) => client.begun(1)));
  await etcd.stop();
  for (const client of clients) {
    await client.closed();
    expect(client.answers).toMatchObject([{ status: 200, whole: false }]);
    expect(client.text).not.toMatch(/event|error/);
  }
});

test('a watch of this package ends when the server stops', async () => {
  const etcd = await start();
  const client = connect({ endpoints: etcd.url });
  const begun = gate();
  const rejected = rejection(client.watch('/k', { timeout: 86_400, started: begun.open }), EtcdConnectionFailed);
  await begun.opened;
  await etcd.stop();
  expect((await rejected).message).toContain(etcd.url);
});

test.each(FRONTS)(
  'on %s, stop closes connections that are idle, new, or in the middle of a request',
  async (_name, api) => {
    const etcd = await start();
    const clients = await Promise.all(Array.from({ length: 4 }, () => RawConnection.open(etcd.url)));
    const [idle, , headers, body] = clients as [RawConnection, RawConnection, RawConnection, RawConnection];
    idle.send(api.get('/k'));
    await idle.wholeAnswers(1);
    headers.send(api.head.slice(0, 10));
    body.send(api.put('/k', 'x'.repeat(1000)).slice(0, 500));
    await Promise.all([headers.flushed(), body.flushed()]);
    await etcd.stop();
    for (const client of clients) await client.closed();
    expect(clients.map(({ answers }) => answers.length)).toEqual([1, 0, 0, 0]);
  },
);

test.each(FRONTS)('on %s, stop closes the connection of a client that does not read', async (_name, api) => {
  const etcd = await start();
  const client = await RawConnection.open(etcd.url);
  client.send(api.put('/k', 'x'.repeat(1_000_000)));
  await client.wholeAnswers(1);
  client.socket.pause();
  client.send(api.get('/k').repeat(50));
  await client.flushed();
  await etcd.stop();
  client.socket.resume();
  await client.closed();
  await expectFree(portOf(etcd));
});

test.each(FRONTS)('on %s, stop ends every request in progress, with or without an answer', async (_name, api) => {
  const etcd = await start();
  const clients = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(etcd.url)));
  for (const client of clients) client.send((api.put('/k', 'v') + api.get('/k')).repeat(100));
  await until(
    () => clients.some(({ answers }) => answers.length > 0),
    (some) => some,
    { every: 1 },
  );
  await etcd.stop();
  for (const client of clients) {
    await client.closed();
    const whole = client.answers.filter((answer) => answer.whole);
    expect(whole.length).toBeGreaterThanOrEqual(client.answers.length - 1);
    expect(whole.every(({ status }) => status === 200 || status === 201)).toBe(true);
  }
});

test('stop may be called several times, even at the same time', async () => {
  const etcd = await start();
  await Promise.all([etcd.stop(), etcd.stop()]);
  await etcd.stop();
  await expectFree(portOf(etcd));
});

test('another server can use the port after stop, and has none of the keys', async () => {
  const first = await start();
  const client = await RawConnection.open(first.url);
  client.send(put('/k', '1'));
  await client.wholeAnswers(1);
  await first.stop();
  const second = await EmbeddedEtcd.start({ port: portOf(first) });
  onTestFinished(() => second.stop());
  const next = await RawConnection.open(second.url);
  next.send(get('/k') + request('GET', '/v2/members'));
  const [read, members] = await next.wholeAnswers(2);
  expect(read?.status).toBe(404);
  const before = client.answers[0]?.headers['x-etcd-cluster-id'];
  expect(members?.headers['x-etcd-cluster-id']).toMatch(/^[0-9a-f]{16}$/);
  expect(members?.headers['x-etcd-cluster-id']).not.toBe(before);
});

test('a server declared with "await using" stops at the end of its block', async () => {
  let port: number;
  {
    await using etcd = await EmbeddedEtcd.start();
    port = portOf(etcd);
    await expect(RawConnection.open(etcd.url)).resolves.toBeInstanceOf(RawConnection);
  }
  await expectFree(port);
});

test('a process ends after its server has stopped, despite a long poll, a watch, a lease and a key with a TTL', async () => {
  const result = await runScript(`
    import { connect } from 'node:net';
    import { once } from 'node:events';
    import { EmbeddedEtcd } from 'etcd-v2-lock/server';
    const etcd = await EmbeddedEtcd.start();
    const socket = connect(Number(new URL(etcd.url).port), '127.0.0.1');
    socket.on('error', () => {});
    const body = new URLSearchParams({ value: 'v', ttl: '3600' });
    await fetch(etcd.url + '/v2/keys/k', { method: 'PUT', body });
    socket.write('GET /v2/keys/k?wait=true HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n');
    await once(socket, 'data');
    const lease = { method: 'POST', body: JSON.stringify({ TTL: '3600' }) };
    await (await fetch(etcd.url + '/v3/lease/grant', lease)).text();
    const watch = { method: 'POST', body: JSON.stringify({ create_request: { key: btoa('k') } }) };
    const { body: events } = await fetch(etcd.url + '/v3/watch', watch);
    const reader = events.getReader();
    await reader.read();
    const cutOff = reader.read().catch(() => {});
    await etcd.stop();
    await cutOff;
    console.log('stopped');
  `);
  expect(result).toMatchObject({ code: 0, stdout: 'stopped\n', stderr: '' });
});

test('an idle server keeps its process alive until it is stopped', async () => {
  const result = await runScript(`
    import { EmbeddedEtcd } from 'etcd-v2-lock/server';
    const etcd = await EmbeddedEtcd.start();
    process.on('beforeExit', () => console.log('nothing left to do'));
    const stop = () => {
      console.log('stopping');
      void etcd.stop();
    };
    setTimeout(stop, 100).unref();
  `);
  expect(result).toMatchObject({ code: 0, stdout: 'stopping\nnothing left to do\n', stderr: '' });
});
