// Clients that send far more than they take answers of: they are cut off, and nobody else notices.
import { expect, test } from 'vitest';
import { MOST_BYTES, MOST_REQUESTS } from '../../src/server/pipeline.ts';
import { expectUnharmed, type OpenServer, serveOpenly, waiting } from '../support/open-server.ts';
import { get, poll, put, RawConnection } from '../support/raw-connection.ts';

/** Requests that are parsed with the last one before the cut-off: as many as fit into what is read at once. */
const AT_ONCE = 65_536 / 40;

const MIB = 2 ** 20;

/** A client whose long poll on `/k` is in place. */
async function poller(etcd: OpenServer): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  client.send(poll('/k'));
  await client.begun(1);
  await waiting(etcd, 1);
  return client;
}

function counted({ server }: OpenServer): () => number {
  let count = 0;
  server.on('request', () => {
    count += 1;
  });
  return () => count;
}

test('a client is cut off that sends requests without end behind a long poll; none of them is carried out', async () => {
  const etcd = await serveOpenly();
  const [client, other] = [await poller(etcd), await RawConnection.open(etcd.url)];
  const requests = counted(etcd);
  client.send(put('/other', '1') + get('/k').repeat(20 * MOST_REQUESTS));
  await client.closed();
  expect(requests()).toBeGreaterThan(MOST_REQUESTS);
  expect(requests()).toBeLessThanOrEqual(MOST_REQUESTS + AT_ONCE);
  other.send(put('/k', '1'));
  expect((await other.wholeAnswers(1))[0]?.headers).toMatchObject({ 'x-etcd-index': '4' });
  other.hangUp();
  await expectUnharmed(etcd);
});

test('a client is cut off that sends more bytes than that many requests may have', async () => {
  const etcd = await serveOpenly();
  const client = await poller(etcd);
  const requests = counted(etcd);
  client.send(put('/other', 'x'.repeat(MIB - 'value='.length)).repeat(100));
  await client.closed();
  expect(requests()).toBeLessThanOrEqual(MOST_BYTES / MIB + 2);
  await expectUnharmed(etcd);
  expect(etcd.store.index).toBe(3);
});

test('a client that is nearly so far ahead gets every answer after the event', async () => {
  const etcd = await serveOpenly();
  const client = await poller(etcd);
  const count = MOST_REQUESTS - 1;
  const arrived = counted(etcd);
  client.send(get('/none').repeat(count));
  await waiting(etcd, 1);
  await expect.poll(arrived, { timeout: 10_000 }).toBe(count);
  etcd.store.set('/k', '1', {});
  await expect.poll(() => client.text.split('HTTP/1.1 404 ').length - 1, { timeout: 10_000 }).toBe(count);
  client.hangUp();
  await expectUnharmed(etcd);
});

test('a client that hangs up so far ahead leaves nothing, and the next one is answered', async () => {
  const etcd = await serveOpenly();
  const client = await poller(etcd);
  const arrived = counted(etcd);
  client.send(put('/k', '1').repeat(MOST_REQUESTS - 1));
  await expect.poll(arrived, { timeout: 10_000 }).toBe(MOST_REQUESTS - 1);
  client.hangUp();
  await expectUnharmed(etcd);
  expect(etcd.store.index).toBe(3);
});

test('requests that are answered as they come are no bound to a connection, however many and large', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(put('/too-large', 'x'.repeat(2 * MOST_BYTES)));
  const large = put('/large', 'x'.repeat(MIB / 2));
  for (let i = 0; i < 3 * (MOST_BYTES / MIB); i += 1) client.send(large);
  client.send(get('/none').repeat(2 * MOST_REQUESTS));
  await expect.poll(() => client.text.split('HTTP/1.1 404 ').length - 1, { timeout: 20_000 }).toBe(2 * MOST_REQUESTS);
  client.hangUp();
  await expectUnharmed(etcd);
});
