import { describe, expect, test } from 'vitest';
import { expectUnharmed, type OpenServer, serveOpenly } from '../support/open-server.ts';
import { get, RawConnection, request } from '../support/raw-connection.ts';

const MIB = 2 ** 20;
const FORM = 'application/x-www-form-urlencoded';

const formOf = (length: number): string => 'value='.padEnd(length, 'x');

/** The two ways to send a body. */
const encodings: [string, (body: string) => string][] = [
  ['with a Content-Length', (body) => `Content-Length: ${body.length}\r\n\r\n${body}`],
  ['in chunks', (body) => `Transfer-Encoding: chunked\r\n\r\n${chunks(body)}0\r\n\r\n`],
];

function chunks(body: string): string {
  let text = '';
  for (let at = 0; at < body.length; at += 10_000) {
    const chunk = body.slice(at, at + 10_000);
    text += `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
  }
  return text;
}

async function send(etcd: OpenServer, method: string, type: string, body: string): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  const typed = type === '' ? '' : `Content-Type: ${type}\r\n`;
  return client.send(`${method} /v2/keys/k HTTP/1.1\r\nHost: localhost\r\n${typed}${body}`);
}

const TOO_LARGE = { errorCode: 210, message: 'Invalid POST form', cause: 'http: POST too large', index: 0 };

describe.each(encodings)('a form sent %s', (_, encoded) => {
  test('of 1 MiB is accepted', async () => {
    const etcd = await serveOpenly();
    const client = await send(etcd, 'PUT', FORM, encoded(formOf(MIB)));
    expect((await client.wholeAnswers(1))[0]?.status).toBe(201);
    expect(etcd.store.get('/k', {}).value).toHaveLength(MIB - 'value='.length);
    client.hangUp();
    await expectUnharmed(etcd);
  });

  test.each(['PUT', 'POST'])(
    'by %s is rejected with one byte more, and the connection stays usable',
    async (method) => {
      const etcd = await serveOpenly();
      const client = await send(etcd, method, FORM, encoded(formOf(MIB + 1)));
      client.send(get('/'));
      const [refused, next] = await client.wholeAnswers(2);
      expect([refused?.status, JSON.parse(refused?.body ?? '')]).toEqual([400, TOO_LARGE]);
      expect(next?.status).toBe(200);
      expect(etcd.store.index).toBe(3);
      client.hangUp();
      await expectUnharmed(etcd);
    },
  );

  test('of 20 MiB is rejected in the same way', async () => {
    const etcd = await serveOpenly();
    const client = await send(etcd, 'PUT', FORM, encoded(formOf(20 * MIB)));
    const [refused] = await client.wholeAnswers(1);
    expect([refused?.status, JSON.parse(refused?.body ?? '')]).toEqual([400, TOO_LARGE]);
    client.hangUp();
    await expectUnharmed(etcd);
  });

  test.each(['application/json', 'multipart/form-data; boundary=x', 'text/plain', ''])(
    'with the Content-Type %j is ignored, whatever its length',
    async (type) => {
      const etcd = await serveOpenly();
      const client = await send(etcd, 'PUT', type, encoded(formOf(20 * MIB)));
      client.send(get('/k'));
      const [written, read] = await client.wholeAnswers(2);
      expect(written?.status).toBe(201);
      expect(JSON.parse(read?.body ?? '')).toMatchObject({ node: { key: '/k', value: '' } });
      client.hangUp();
      await expectUnharmed(etcd);
    },
  );

  test.each(['GET', 'DELETE', 'PATCH'])('by %s is ignored, whatever its length', async (method) => {
    const etcd = await serveOpenly();
    const client = await send(etcd, method, FORM, encoded(formOf(20 * MIB)));
    client.send(get('/'));
    const [answer, next] = await client.wholeAnswers(2);
    expect([answer?.status, next?.status]).toEqual([method === 'PATCH' ? 405 : 404, 200]);
    client.hangUp();
    await expectUnharmed(etcd);
  });
});

test('a form that arrives byte by byte is read', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const other = await RawConnection.open(etcd.url);
  const text = request('PUT', '/v2/keys/k', { form: 'value=slowly' });
  for (const [i, byte] of [...text].entries()) {
    client.send(byte);
    other.send(get('/'));
    await other.wholeAnswers(i + 1);
  }
  expect((await client.wholeAnswers(1))[0]?.status).toBe(201);
  expect(etcd.store.get('/k', {}).value).toBe('slowly');
  client.hangUp();
  other.hangUp();
  await expectUnharmed(etcd);
});

test('a form shorter than its Content-Length gets 400 when the client closes its half', async () => {
  const etcd = await serveOpenly();
  const client = await send(etcd, 'PUT', FORM, 'Content-Length: 100\r\n\r\nvalue=1');
  client.halfClose();
  expect(await client.closed()).toMatch(/^HTTP\/1\.1 400 /);
  expect(etcd.store.index).toBe(3);
  await expectUnharmed(etcd);
});

test('a form of a hundred thousand fields is read', async () => {
  const etcd = await serveOpenly();
  const form = `${Array.from({ length: 100_000 }, (_, i) => `f${i}=`).join('&')}&value=last`;
  const client = await RawConnection.open(etcd.url);
  client.send(request('PUT', '/v2/keys/k', { form }));
  await client.wholeAnswers(1);
  expect(etcd.store.get('/k', {}).value).toBe('last');
  client.hangUp();
  await expectUnharmed(etcd);
});
