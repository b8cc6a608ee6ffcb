// Clients that disconnect in the middle of something. The server keeps nothing for them.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { expectUnharmed, type OpenServer, requests, serveOpenly, waiting } from '../support/open-server.ts';
import { get, poll, put, RawConnection, request } from '../support/raw-connection.ts';
import { until } from '../support/until.ts';

type Leaving = (client: RawConnection) => void;

const ways: [string, Leaving][] = [
  ['hangs up', (client) => client.hangUp()],
  ['resets its connection', (client) => client.reset()],
  ['closes its half', (client) => client.halfClose()],
];

const MIB = 2 ** 20;
const bigPut = (key: string): string => put(key, 'x'.repeat(MIB - 'value='.length));

/** A client with a long poll on `/k`. */
async function poller(etcd: OpenServer): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  client.send(poll('/k'));
  await client.begun(1);
  await waiting(etcd, 1);
  return client;
}

test.each(ways)('a client that %s in a long poll leaves nothing behind', async (_, leave) => {
  const etcd = await serveOpenly();
  leave(await poller(etcd));
  await expectUnharmed(etcd);
});

test.each(ways)('a client that %s in a stream leaves nothing behind', async (_, leave) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(request('GET', '/v2/keys/k?wait=true&stream=true'));
  await waiting(etcd, 1);
  etcd.store.set('/k', '1', {});
  await until(
    () => client.text,
    (text) => text.includes('"value":"1"'),
  );
  leave(client);
  await expectUnharmed(etcd);
});

test.each(ways)('a client that %s in a stream from the history leaves nothing behind', async (_, leave) => {
  const etcd = await serveOpenly();
  etcd.store.set('/k', '1', {});
  const client = await RawConnection.open(etcd.url);
  client.send(request('GET', '/v2/keys/k?wait=true&stream=true&waitIndex=4'));
  await until(
    () => client.text,
    (text) => text.includes('"value":"1"'),
  );
  leave(client);
  await expectUnharmed(etcd);
});

test.each(ways)('a client that %s before its request is complete leaves nothing behind', async (_, leave) => {
  const etcd = await serveOpenly();
  for (const part of ['', 'GET /v2', 'GET /v2/keys/k HTTP/1.1\r\nHost: et']) {
    const client = await RawConnection.open(etcd.url);
    client.send(part);
    leave(client);
  }
  await expectUnharmed(etcd);
});

test.each(ways)('a client that %s in the middle of a form writes nothing', async (_, leave) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const whole = put('/k', 'x'.repeat(100_000));
  const arrived = once(etcd.server, 'request');
  client.send(whole.slice(0, 50_000));
  await arrived;
  leave(client);
  await expectUnharmed(etcd);
  expect(etcd.store.index).toBe(3);
});

test.each(ways)('a client that %s in the middle of a chunked form writes nothing', async (_, leave) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const arrived = once(etcd.server, 'request');
  const type = 'Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n';
  client.send(`PUT /v2/keys/k HTTP/1.1\r\nHost: localhost\r\n${type}\r\n7\r\nvalue=1\r\n`);
  await arrived;
  leave(client);
  await expectUnharmed(etcd);
  expect(etcd.store.index).toBe(3);
});

test.each(ways)('a client that %s instead of reading a long answer leaves nothing behind', async (_, leave) => {
  const etcd = await serveOpenly();
  for (let i = 0; i < 16; i += 1) etcd.store.set(`/k/${i}`, 'x'.repeat(MIB), {});
  const client = await RawConnection.open(etcd.url);
  client.socket.pause();
  client.send(get('/k'));
  await blocked(etcd);
  leave(client);
  client.socket.resume();
  await expectUnharmed(etcd);
});

test.each(ways)('a client that %s with a poll behind an unread answer leaves nothing behind', async (_, leave) => {
  const etcd = await serveOpenly();
  for (let i = 0; i < 16; i += 1) etcd.store.set(`/k/${i}`, 'x'.repeat(MIB), {});
  const client = await RawConnection.open(etcd.url);
  client.socket.pause();
  const [arrived, unread] = [requests(etcd, 2), blocked(etcd)];
  client.send(get('/k') + poll('/k'));
  await Promise.all([arrived, unread]);
  leave(client);
  client.socket.resume();
  await expectUnharmed(etcd);
});

test.each([
  ['a request without a Host header', 'GET /version HTTP/1.1\r\n\r\n'],
  ['a read and a request without a Host header', `${get('/k')}GET /version HTTP/1.1\r\n\r\n`],
  ['a poll by HTTP/1.0', 'GET /v2/keys/k?wait=true HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'],
])('a poll behind %s, after which the server ends the connection, leaves nothing behind', async (_, first) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(first + poll('/z'));
  await client.begun(1);
  etcd.store.set('/k', '1', {});
  await client.closed();
  await expectUnharmed(etcd);
});

test.each(ways)('a client that %s with a poll behind a write does not undo the write', async (_, leave) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(request('POST', '/v2/keys/q', { form: 'value=1' }) + poll('/q'));
  await waiting(etcd, 1);
  leave(client);
  await expectUnharmed(etcd);
  expect(etcd.store.get('/q', {}).nodes).toHaveLength(1);
});

test.each(ways)('a client that %s with requests behind its poll cancels those requests', async (_, leave) => {
  const etcd = await serveOpenly();
  const client = await poller(etcd);
  const arrived = requests(etcd, 3);
  client.send(put('/other', '1') + poll('/k') + put('/other', '2'));
  await arrived;
  leave(client);
  await expectUnharmed(etcd);
  expect(etcd.store.index).toBe(3);
});

test.each(ways)('a client that %s with long forms behind its poll writes nothing', async (_, leave) => {
  const etcd = await serveOpenly();
  const client = await poller(etcd);
  const arrived = requests(etcd, 4);
  client.send(bigPut('/other').repeat(4));
  await arrived;
  leave(client);
  await expectUnharmed(etcd);
  expect(etcd.store.index).toBe(3);
});

test.each(ways)('a client that %s after a poll with an unexpected body leaves nothing behind', async (_, leave) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(
    `GET /v2/keys/k?wait=true HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${MIB}\r\n\r\n${'x'.repeat(MIB)}`,
  );
  await waiting(etcd, 1);
  leave(client);
  await expectUnharmed(etcd);
});

test('a client that resets its connection at the time of the event leaves nothing behind', async () => {
  const etcd = await serveOpenly();
  const client = await poller(etcd);
  client.reset();
  etcd.store.set('/k', '1', {});
  await expectUnharmed(etcd);
});

test('thousands of clients that connect and disconnect at once leave nothing behind', async () => {
  const etcd = await serveOpenly();
  for (let round = 0; round < 20; round += 1) {
    const clients = await Promise.all(Array.from({ length: 150 }, () => RawConnection.open(etcd.url)));
    for (const [i, client] of clients.entries()) ways[i % ways.length]?.[1](client);
    await Promise.all(clients.map((client) => client.closed()));
  }
  await expectUnharmed(etcd);
});

test('hundreds of clients that disconnect right after their requests leave nothing behind', async () => {
  const etcd = await serveOpenly();
  for (let round = 0; round < 5; round += 1) {
    const clients = await Promise.all(Array.from({ length: 100 }, () => RawConnection.open(etcd.url)));
    for (const [i, client] of clients.entries()) {
      client.send(put('/k', '1') + poll('/other') + get('/k'));
      ways[i % ways.length]?.[1](client);
    }
    await Promise.all(clients.map((client) => client.closed()));
  }
  await expectUnharmed(etcd);
});

/** Waits until an answer fills the buffers of the connection: until no more of it is sent. */
async function blocked({ server }: OpenServer): Promise<void> {
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
  let sent = 0;
  await until(
    () => {
      const { bytesWritten = 0, writableLength = 0 } = response.socket ?? {};
      const isBlocked = response.headersSent && writableLength > 0 && bytesWritten === sent;
      sent = bytesWritten;
      return isBlocked;
    },
    (isBlocked) => isBlocked,
  );
}
