// Clients that disconnect in the middle of something. The server keeps nothing for them.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { expectUnharmed, type OpenServer, requests, serveOpenly, waiting } from '../support/open-server.ts';
import { get, poll, RawConnection, request } from '../support/raw-connection.ts';
import { until } from '../support/until.ts';
import { FRONTS, type FrontApi } from './fronts.ts';

type Leaving = (client: RawConnection) => void;

const ways: [string, Leaving][] = [
  ['hangs up', (client) => client.hangUp()],
  ['resets its connection', (client) => client.reset()],
  ['closes its half', (client) => client.halfClose()],
];

const MIB = 2 ** 20;
/** A client that waits for a change of `/k`. */
async function waiter(etcd: OpenServer, api: FrontApi): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  client.send(api.wait('/k'));
  await client.begun(1);
  await waiting(etcd, 1);
  return client;
}

describe.each(FRONTS)('on %s,', (_name, api) => {
  test.each(ways)('a client that %s in a wait leaves nothing behind', async (_, leave) => {
    const etcd = await serveOpenly();
    leave(await waiter(etcd, api));
    await expectUnharmed(etcd);
  });

  test.each(ways)('a client that %s in a stream leaves nothing behind', async (_, leave) => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    client.send(api.stream('/k'));
    await waiting(etcd, 1);
    api.set(etcd, '/k', '1');
    await until(
      () => client.text,
      (text) => api.hasEvent(text, '1'),
    );
    leave(client);
    await expectUnharmed(etcd);
  });

  test.each(ways)('a client that %s in a stream from the history leaves nothing behind', async (_, leave) => {
    const etcd = await serveOpenly();
    api.set(etcd, '/k', '1');
    const client = await RawConnection.open(etcd.url);
    client.send(api.history('/k'));
    await until(
      () => client.text,
      (text) => api.hasEvent(text, '1'),
    );
    leave(client);
    await expectUnharmed(etcd);
  });

  test.each(ways)('a client that %s before its request is complete leaves nothing behind', async (_, leave) => {
    const etcd = await serveOpenly();
    const head = api.head.slice(0, api.head.indexOf('localhost'));
    for (const part of ['', head.slice(0, 7), head]) {
      const client = await RawConnection.open(etcd.url);
      client.send(part);
      leave(client);
    }
    await expectUnharmed(etcd);
  });

  test.each(ways)('a client that %s in the middle of a body writes nothing', async (_, leave) => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    const whole = api.put('/k', 'x'.repeat(100_000));
    const arrived = once(etcd.server, 'request');
    client.send(whole.slice(0, 50_000));
    await arrived;
    leave(client);
    await expectUnharmed(etcd);
    expect(api.writes(etcd)).toBe(0);
  });

  test.each(ways)('a client that %s in the middle of a chunked body writes nothing', async (_, leave) => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    const arrived = once(etcd.server, 'request');
    client.send(`${api.head}Transfer-Encoding: chunked\r\n\r\n${api.body.length.toString(16)}\r\n${api.body}\r\n`);
    await arrived;
    leave(client);
    await expectUnharmed(etcd);
    expect(api.writes(etcd)).toBe(0);
  });

  test.each(ways)('a client that %s instead of reading a long answer leaves nothing behind', async (_, leave) => {
    const etcd = await serveOpenly();
    for (let i = 0; i < 16; i += 1) api.set(etcd, `/k/${i}`, 'x'.repeat(MIB));
    const client = await RawConnection.open(etcd.url);
    client.socket.pause();
    client.send(api.list('/k'));
    await blocked(etcd);
    leave(client);
    client.socket.resume();
    await expectUnharmed(etcd);
  });

  test.each(ways)('a client that %s with a wait behind an unread answer leaves nothing behind', async (_, leave) => {
    const etcd = await serveOpenly();
    for (let i = 0; i < 16; i += 1) api.set(etcd, `/k/${i}`, 'x'.repeat(MIB));
    const client = await RawConnection.open(etcd.url);
    client.socket.pause();
    const [arrived, unread] = [requests(etcd, 2), blocked(etcd)];
    client.send(api.list('/k') + api.wait('/k'));
    await Promise.all([arrived, unread]);
    leave(client);
    client.socket.resume();
    await expectUnharmed(etcd);
  });

  test.each(ways)('a client that %s with requests behind its wait cancels those requests', async (_, leave) => {
    const etcd = await serveOpenly();
    const client = await waiter(etcd, api);
    const arrived = requests(etcd, 3);
    client.send(api.put('/other', '1') + api.wait('/k') + api.put('/other', '2'));
    await arrived;
    leave(client);
    await expectUnharmed(etcd);
    expect(api.writes(etcd)).toBe(0);
  });

  test.each(ways)('a client that %s with long bodies behind its wait writes nothing', async (_, leave) => {
    const etcd = await serveOpenly();
    const client = await waiter(etcd, api);
    const arrived = requests(etcd, 4);
    client.send(api.put('/other', 'x'.repeat(MIB - 'value='.length)).repeat(4));
    await arrived;
    leave(client);
    await expectUnharmed(etcd);
    expect(api.writes(etcd)).toBe(0);
  });

  test('a client that resets its connection at the time of the event leaves nothing behind', async () => {
    const etcd = await serveOpenly();
    const client = await waiter(etcd, api);
    client.reset();
    api.set(etcd, '/k', '1');
    await expectUnharmed(etcd);
  });

  test('hundreds of clients that disconnect right after their requests leave nothing behind', async () => {
    const etcd = await serveOpenly();
    for (let round = 0; round < 5; round += 1) {
      const clients = await Promise.all(Array.from({ length: 100 }, () => RawConnection.open(etcd.url)));
      for (const [i, client] of clients.entries()) {
        client.send(api.put('/k', '1') + api.wait('/other') + api.get('/k'));
        ways[i % ways.length]?.[1](client);
      }
      await Promise.all(clients.map((client) => client.closed()));
    }
    await expectUnharmed(etcd);
  });
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

test.each(ways)('a client that %s with a wait behind a write does not undo the write', async (_, leave) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(request('POST', '/v2/keys/q', { form: 'value=1' }) + poll('/q'));
  await waiting(etcd, 1);
  leave(client);
  await expectUnharmed(etcd);
  expect(etcd.store.get('/q', {}).nodes).toHaveLength(1);
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

test('thousands of clients that connect and disconnect at once leave nothing behind', async () => {
  const etcd = await serveOpenly();
  for (let round = 0; round < 20; round += 1) {
    const clients = await Promise.all(Array.from({ length: 150 }, () => RawConnection.open(etcd.url)));
    for (const [i, client] of clients.entries()) ways[i % ways.length]?.[1](client);
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
