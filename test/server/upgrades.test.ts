// Requests with an `Upgrade` header, which etcd ignores.
import { once } from 'node:events';
import type { Server } from 'node:http';
import { expect, test } from 'vitest';
import { expectUnharmed, serveOpenly, waiting } from '../support/open-server.ts';
import { get, poll, put, RawConnection, request } from '../support/raw-connection.ts';

const OFFER = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
const H2C = 'Connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n';

const offeringPut = (key: string, value: string, headers = OFFER): string =>
  request('PUT', `/v2/keys${key}`, { headers, form: `value=${value}` });

const values = (client: RawConnection): (string | undefined)[] =>
  client.answers.map(({ body }) => JSON.parse(body).node?.value);

test.each([
  ['websocket', OFFER],
  ['h2c', H2C],
])('a request behind an offer to upgrade to %s is answered', async (_, headers) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(offeringPut('/k', '1', headers) + get('/k') + offeringPut('/k', '2', headers) + get('/k'));
  await client.wholeAnswers(4);
  expect(values(client)).toEqual(['1', '1', '2', '2']);
  client.send(get('/k'));
  await client.wholeAnswers(5);
  client.hangUp();
  await expectUnharmed(etcd);
});

test('an offer behind other requests is answered in order', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(put('/k', '1') + get('/k') + offeringPut('/k', '2') + put('/k', 'x'.repeat(200_000)) + get('/k'));
  await client.wholeAnswers(5);
  expect(values(client).slice(0, 3)).toEqual(['1', '1', '2']);
  client.hangUp();
  await expectUnharmed(etcd);
});

test('an offer that arrives in small pieces is answered', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const text = put('/k', '1') + offeringPut('/k', '2') + offeringPut('/k', '3') + get('/k');
  for (let at = 0; at < text.length; at += 11) {
    client.send(text.slice(at, at + 11));
    await client.flushed();
  }
  await client.wholeAnswers(4);
  expect(values(client)).toEqual(['1', '2', '3', '3']);
});

test('an offer behind a long poll and the requests after it are answered after the event', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const offered = once(etcd.server, 'upgrade');
  client.send(poll('/k') + offeringPut('/k', '2') + get('/k'));
  await offered;
  await waiting(etcd, 1);
  client.send(get('/k'));
  await client.flushed();
  etcd.store.set('/k', '1', {});
  await client.wholeAnswers(4);
  expect(values(client)).toEqual(['1', '2', '2', '2']);
  client.hangUp();
  await expectUnharmed(etcd);
});

test.each<[string, (client: RawConnection) => unknown]>([
  ['hangs up', (client) => client.hangUp()],
  ['resets its connection', (client) => client.reset()],
  ['closes its half', (client) => client.halfClose()],
  ['keeps sending', (client) => client.send('x'.repeat(20 * 2 ** 20))],
])('a client that %s with an offer behind a long poll leaves nothing behind', async (_, leave) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const offered = once(etcd.server, 'upgrade');
  client.send(poll('/k') + offeringPut('/k', '2'));
  await offered;
  await waiting(etcd, 1);
  leave(client);
  await expectUnharmed(etcd);
  expect(etcd.store.index).toBe(3);
});

test('stop closes a connection with an offer behind a long poll', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const offered = once(etcd.server, 'upgrade');
  client.send(poll('/k') + offeringPut('/k', '2'));
  await offered;
  await waiting(etcd, 1);
  const server: Server = etcd.server;
  server.closeAllConnections();
  await client.closed();
  await expectUnharmed(etcd);
});
