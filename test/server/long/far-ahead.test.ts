// Clients that send far more requests than they read answers. The server cuts them off, and other clients are unaffected.
import { describe, expect, test, vi } from 'vitest';
import { MAX_BYTES, MAX_REQUESTS } from '../../../src/server/front/connection/pipeline.ts';
import { expectUnharmed, type OpenServer, serveOpenly, waiting } from '../../support/open-server.ts';
import { get, put, RawConnection, request } from '../../support/raw-connection.ts';
import { until } from '../../support/until.ts';
import { FRONTS, type FrontApi, V2 } from '../fronts.ts';

/** Requests that fit into one read of 64 KiB. So many may be parsed before the server cuts the client off. */
const AT_ONCE = 65_536 / 40;

const MIB = 2 ** 20;

/** Milliseconds. */
const PATIENCE = 100_000;

vi.setConfig({ testTimeout: 2 * PATIENCE });

/** Everything the server sends until it closes the connection. So many answers take long on a busy machine. */
async function toTheEnd(client: RawConnection): Promise<string> {
  await until(() => client.socket.closed, Boolean, { timeout: PATIENCE });
  return client.text;
}

/** The start of each answer to `get('/none')`. */
const NONE = /HTTP\/1\.1 404 /g;

/** The server closes the connection after its answer to this request. */
const last = request('GET', '/version', { headers: 'Connection: close\r\n' });

/** A client that waits for a change of `/k`. */
async function waiter(etcd: OpenServer, api: FrontApi): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  client.send(api.wait('/k'));
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

describe.each(FRONTS)('on %s,', (_name, api) => {
  test('a client that keeps sending requests behind a wait is cut off, and none of them is carried out', async () => {
    const etcd = await serveOpenly();
    const [client, other] = [await waiter(etcd, api), await RawConnection.open(etcd.url)];
    const requests = counted(etcd);
    client.send(api.put('/other', '1') + api.get('/k').repeat(20 * MAX_REQUESTS));
    await toTheEnd(client);
    expect(requests()).toBeGreaterThan(MAX_REQUESTS);
    expect(requests()).toBeLessThanOrEqual(MAX_REQUESTS + AT_ONCE);
    other.send(api.put('/k', '1'));
    await other.wholeAnswers(1);
    expect(api.writes(etcd)).toBe(1);
    other.hangUp();
    await expectUnharmed(etcd);
  });

  test('a client that sends too many bytes behind a wait is cut off', async () => {
    const etcd = await serveOpenly();
    const client = await waiter(etcd, api);
    const requests = counted(etcd);
    client.send(api.put('/other', 'x'.repeat(MIB - 'value='.length)).repeat(100));
    await toTheEnd(client);
    expect(requests()).toBeLessThanOrEqual(MAX_BYTES / MIB + 2);
    await expectUnharmed(etcd);
    expect(api.writes(etcd)).toBe(0);
  });

  test('a client that hangs up with thousands of unanswered requests leaves nothing behind', async () => {
    const etcd = await serveOpenly();
    const client = await waiter(etcd, api);
    const arrived = counted(etcd);
    client.send(api.put('/k', '1').repeat(MAX_REQUESTS - 1));
    await until(arrived, (requests) => requests === MAX_REQUESTS - 1, { timeout: PATIENCE });
    client.hangUp();
    await expectUnharmed(etcd);
    expect(api.writes(etcd)).toBe(0);
  });
});

test('a client just below the limit gets every answer after the event', async () => {
  const etcd = await serveOpenly();
  const client = await waiter(etcd, V2);
  const count = MAX_REQUESTS - 2;
  const arrived = counted(etcd);
  client.send(get('/none').repeat(count) + last);
  await until(arrived, (requests) => requests === count + 1, { timeout: PATIENCE });
  etcd.store.set('/k', '1', {});
  expect((await toTheEnd(client)).match(NONE)).toHaveLength(count);
  await expectUnharmed(etcd);
});

test('a connection whose requests are answered as they arrive has no limit on their number and size', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const writes = (2 * MAX_BYTES) / MIB + 2;
  client.send(put('/too-large', 'x'.repeat(MAX_BYTES + MIB)));
  client.send(
    request('PUT', '/v2/keys/k?noValueOnSuccess=true', { form: `value=${'x'.repeat(MIB / 2)}` }).repeat(writes),
  );
  const count = MAX_REQUESTS + 100;
  client.send(get('/none').repeat(count) + last);
  expect((await toTheEnd(client)).match(NONE)).toHaveLength(count);
  expect(etcd.store.index).toBe(3 + writes);
  await expectUnharmed(etcd);
});
