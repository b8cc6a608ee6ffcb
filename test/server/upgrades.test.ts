// Requests with an `Upgrade` header, which etcd ignores.
import { once } from 'node:events';
import type { Server } from 'node:http';
import { describe, expect, test } from 'vitest';
import { expectUnharmed, type OpenServer, serveOpenly, waiting } from '../support/open-server.ts';
import { get, poll, RawConnection } from '../support/raw-connection.ts';
import { FRONTS, V2 } from './fronts.ts';

const OFFER = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
const H2C = 'Connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n';

/** Sends a request that waits, and an offer to upgrade behind it. Resolves when the server has both. */
async function offerBehind(wait: string, offer: string): Promise<{ etcd: OpenServer; client: RawConnection }> {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const offered = once(etcd.server, 'upgrade');
  client.send(wait + offer);
  await offered;
  await waiting(etcd, 1);
  return { etcd, client };
}

describe.each(FRONTS)('on %s,', (_name, api) => {
  test.each([
    ['websocket', OFFER],
    ['h2c', H2C],
  ])('a request behind an offer to upgrade to %s is answered', async (_, headers) => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    client.send(api.put('/k', '1', headers) + api.get('/k') + api.put('/k', '2', headers) + api.get('/k'));
    await client.wholeAnswers(4);
    expect([1, 3].map((i) => api.valueIn(client.answers[i]))).toEqual(['1', '2']);
    client.send(api.get('/k'));
    await client.wholeAnswers(5);
    client.hangUp();
    await expectUnharmed(etcd);
  });

  test('an offer behind other requests is answered in order', async () => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    client.send(
      api.put('/k', '1') +
        api.get('/k') +
        api.put('/k', '2', OFFER) +
        api.put('/k', 'x'.repeat(200_000)) +
        api.get('/k'),
    );
    await client.wholeAnswers(5);
    expect([1, 4].map((i) => api.valueIn(client.answers[i]))).toEqual(['1', 'x'.repeat(200_000)]);
    client.hangUp();
    await expectUnharmed(etcd);
  });

  test('an offer that arrives in small pieces is answered', async () => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    const text = api.put('/k', '1') + api.put('/k', '2', OFFER) + api.put('/k', '3', OFFER) + api.get('/k');
    for (let at = 0; at < text.length; at += 11) {
      client.send(text.slice(at, at + 11));
      await client.flushed();
    }
    await client.wholeAnswers(4);
    expect(api.valueIn(client.answers[3])).toBe('3');
  });

  test.each<[string, (client: RawConnection) => unknown]>([
    ['hangs up', (client) => client.hangUp()],
    ['resets its connection', (client) => client.reset()],
    ['closes its half', (client) => client.halfClose()],
    ['keeps sending', (client) => client.send('x'.repeat(20 * 2 ** 20))],
  ])('a client that %s with an offer behind a wait leaves nothing behind', async (_, leave) => {
    const { etcd, client } = await offerBehind(api.wait('/k'), api.put('/k', '2', OFFER));
    leave(client);
    await expectUnharmed(etcd);
    expect(api.writes(etcd)).toBe(0);
  });

  test('stop closes a connection with an offer behind a wait', async () => {
    const { etcd, client } = await offerBehind(api.wait('/k'), api.put('/k', '2', OFFER));
    const server: Server = etcd.server;
    server.closeAllConnections();
    await client.closed();
    await expectUnharmed(etcd);
  });
});

test('an offer behind a long poll and the requests after it are answered after the event', async () => {
  const { etcd, client } = await offerBehind(poll('/k'), V2.put('/k', '2', OFFER) + get('/k'));
  client.send(get('/k'));
  await client.flushed();
  etcd.store.set('/k', '1', {});
  await client.wholeAnswers(4);
  expect(client.answers.map((answer) => V2.valueIn(answer))).toEqual(['1', '2', '2', '2']);
  client.hangUp();
  await expectUnharmed(etcd);
});
