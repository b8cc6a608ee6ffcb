import { describe, expect, test } from 'vitest';
import { expectUnharmed, type OpenServer, serveOpenly } from '../support/open-server.ts';
import { get, RawConnection, request } from '../support/raw-connection.ts';
import { FRONTS, type FrontApi, V2 } from './fronts.ts';

const MIB = 2 ** 20;
const FORM = 'application/x-www-form-urlencoded';

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

/** Sends a write of `/k` up to its body. @param body with the headers about its length */
async function send(etcd: OpenServer, { head }: FrontApi, body: string): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  return client.send(`${head}${body}`);
}

async function sendForm(etcd: OpenServer, method: string, type: string, body: string): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  const typed = type === '' ? '' : `Content-Type: ${type}\r\n`;
  return client.send(`${method} /v2/keys/k HTTP/1.1\r\nHost: localhost\r\n${typed}${body}`);
}

describe.each(FRONTS)('on %s,', (_name, api) => {
  describe.each(encodings)('a body sent %s', (_, encoded) => {
    test('of the maximum size is accepted', async () => {
      const etcd = await serveOpenly();
      const client = await send(etcd, api, encoded(api.bodyOf(api.longestBody)));
      expect((await client.wholeAnswers(1))[0]?.status).toBe(api.created);
      expect(api.writes(etcd)).toBe(1);
      client.hangUp();
      await expectUnharmed(etcd);
    });

    test('is rejected with one byte more, and the connection stays usable', async () => {
      const etcd = await serveOpenly();
      const client = await send(etcd, api, encoded(api.bodyOf(api.longestBody + 1)));
      client.send(api.get('/k'));
      const [refused, next] = await client.wholeAnswers(2);
      expect(refused).toSatisfy(api.isTooLong);
      expect(next?.status).toBe(api.missing);
      expect(api.writes(etcd)).toBe(0);
      client.hangUp();
      await expectUnharmed(etcd);
    });

    test('of 20 MiB is rejected in the same way', async () => {
      const etcd = await serveOpenly();
      const client = await send(etcd, api, encoded(api.bodyOf(20 * MIB)));
      expect((await client.wholeAnswers(1))[0]).toSatisfy(api.isTooLong);
      client.hangUp();
      await expectUnharmed(etcd);
    });
  });

  test('a body that arrives byte by byte is read', async () => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    const other = await RawConnection.open(etcd.url);
    for (const [i, byte] of [...api.put('/k', 'slowly')].entries()) {
      client.send(byte);
      other.send(api.get('/other'));
      await other.wholeAnswers(i + 1);
    }
    expect((await client.wholeAnswers(1))[0]?.status).toBe(api.created);
    expect(api.valueOf(etcd, '/k')).toBe('slowly');
    client.hangUp();
    other.hangUp();
    await expectUnharmed(etcd);
  });

  test('a body shorter than its Content-Length gets 400 when the client closes its half', async () => {
    const etcd = await serveOpenly();
    const client = await send(etcd, api, `Content-Length: ${api.body.length + 100}\r\n\r\n${api.body}`);
    client.halfClose();
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 400 /);
    expect(api.writes(etcd)).toBe(0);
    await expectUnharmed(etcd);
  });
});

describe.each(encodings)('a form sent %s', (_, encoded) => {
  test('by POST is rejected with more than 1 MiB', async () => {
    const etcd = await serveOpenly();
    const client = await sendForm(etcd, 'POST', FORM, encoded(V2.bodyOf(MIB + 1)));
    expect((await client.wholeAnswers(1))[0]).toSatisfy(V2.isTooLong);
    client.hangUp();
    await expectUnharmed(etcd);
  });

  test.each(['application/json', 'multipart/form-data; boundary=x', 'text/plain', ''])(
    'with the Content-Type %j is ignored, whatever its length',
    async (type) => {
      const etcd = await serveOpenly();
      const client = await sendForm(etcd, 'PUT', type, encoded(V2.bodyOf(20 * MIB)));
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
    const client = await sendForm(etcd, method, FORM, encoded(V2.bodyOf(20 * MIB)));
    client.send(get('/'));
    const [answer, next] = await client.wholeAnswers(2);
    expect([answer?.status, next?.status]).toEqual([method === 'PATCH' ? 405 : 404, 200]);
    client.hangUp();
    await expectUnharmed(etcd);
  });
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
