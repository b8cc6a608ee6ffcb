// Malformed requests. Each gets a clear answer or a clean end, and leaves the server unchanged.
import { describe, expect, test } from 'vitest';
import { MALFORMED, malformedWrites } from '../support/malformed.ts';
import { expectUnharmed, serveOpenly } from '../support/open-server.ts';
import { get, RawConnection, request } from '../support/raw-connection.ts';
import { FRONTS, V2, V3 } from './fronts.ts';

test.each([...MALFORMED, ...malformedWrites(V3.head, V3.body).map(([what, text]) => [`v3: ${what}`, text] as const)])(
  '%s gets 400, and the server closes the connection',
  async (_, text) => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    client.send(text);
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect([V2, V3].map((api) => api.writes(etcd))).toEqual([0, 0]);
    await expectUnharmed(etcd);
  },
);

test('headers of more than 1 MiB get 431, and the server closes the connection', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(`GET /version HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(2 ** 20)}\r\n\r\n`);
  expect(await client.closed()).toMatch(/^HTTP\/1\.1 431 /);
  await expectUnharmed(etcd);
});

test('a target of almost 1 MiB is accepted, except in the first request of a connection', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(get('/k') + get(`/k?prevValue=${'x'.repeat(1_000_000)}`));
  const answers = await client.wholeAnswers(2);
  expect(answers.map(({ status }) => status)).toEqual([404, 404]);
  client.hangUp();
  const another = await RawConnection.open(etcd.url);
  another.send(get(`/k?prevValue=${'x'.repeat(1_000_000)}`));
  expect(await another.closed()).toBe('');
  await expectUnharmed(etcd);
});

test('a request with thousands of headers is answered', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(request('GET', '/version', { headers: 'X-Many: 1\r\n'.repeat(5000) }));
  expect((await client.wholeAnswers(1))[0]?.status).toBe(200);
  client.hangUp();
  await expectUnharmed(etcd);
});

test('an HTTP/0.9 request gets an answer, and the server closes the connection', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send('GET /version\r\n\r\n');
  expect(await client.closed()).toMatch(/^HTTP\/1\.1 \d{3} .*\r\nConnection: close\r\n/s);
  await expectUnharmed(etcd);
});

test('an incomplete HTTP/0.9 request ends when its client closes its half', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send('GET /version\r\n');
  client.halfClose();
  await client.closed();
  await expectUnharmed(etcd);
});

test('an HTTP/1.0 request is answered, and the server closes the connection', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send('GET /v2/keys/ HTTP/1.0\r\n\r\n');
  await client.closed();
  expect(client.answers).toMatchObject([{ status: 200, headers: { connection: 'close' }, whole: true }]);
  await expectUnharmed(etcd);
});

test('a long poll in HTTP/1.0 gets its event, and the server closes the connection', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send('GET /v2/keys/k?wait=true HTTP/1.0\r\n\r\n');
  await client.begun(1);
  etcd.store.set('/k', '1', {});
  expect(await client.closed()).toMatch(/\r\n\r\n\{"action":"set",.*\}\n$/);
  await expectUnharmed(etcd);
});

test.each(['/nowhere', '/v2', '/v2/', '/v2/keysx', '/v2/members/leaderx', '/metrics'])(
  '%s gets 404 with every method',
  async (path) => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    const methods = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'];
    client.send(methods.map((method) => request(method, path)).join(''));
    const answers = await client.wholeAnswers(methods.length);
    for (const { status, headers, body } of answers) {
      expect([status, body]).toEqual([404, '404 page not found\n']);
      expect(headers).toMatchObject({
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
      });
    }
    client.hangUp();
    await expectUnharmed(etcd);
  },
);

test.each([
  ['PATCH', '/v2/keys/k', 'HEAD,GET,PUT,POST,DELETE'],
  ['OPTIONS', '/v2/keys', 'HEAD,GET,PUT,POST,DELETE'],
  ['PROPFIND', '/v2/keys/k', 'HEAD,GET,PUT,POST,DELETE'],
  ['TRACE', '/v2/keys/k', 'HEAD,GET,PUT,POST,DELETE'],
  ['PUT', '/version', 'GET'],
  ['POST', '/health', 'GET'],
  ['DELETE', '/v2/machines', 'GET,HEAD'],
  ['PUT', '/v2/stats/self', 'GET'],
  ['POST', '/v2/stats/leader', 'GET'],
])('%s %s gets 405 with the allowed methods', async (method, path, allowed) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(request(method, path));
  const [answer] = await client.wholeAnswers(1);
  expect(answer).toMatchObject({ status: 405, headers: { allow: allowed }, body: 'Method Not Allowed\n' });
  client.hangUp();
  await expectUnharmed(etcd);
});

test('a CONNECT request gets no answer, and the server closes the connection', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n');
  expect(await client.closed()).toBe('');
  await expectUnharmed(etcd);
});

describe.each(FRONTS)('on %s,', (_name, api) => {
  test('garbage behind a request closes the connection', async () => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    client.send(`${api.get('/')}\x00\x01garbage\r\n\r\n`);
    await client.closed();
    expect(client.answers.at(-1)?.status).toBe(400);
    await expectUnharmed(etcd);
  });

  test('garbage behind a wait ends the wait and closes the connection', async () => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    client.send(api.wait('/k'));
    await client.begun(1);
    client.send('\x00\x01garbage\r\n\r\n');
    await client.closed();
    expect(client.answers).toMatchObject([{ status: 200, whole: false }]);
    await expectUnharmed(etcd);
  });

  test.each(['websocket', 'h2c', 'TLS/1.0'])('an offer to upgrade to %s is ignored', async (protocol) => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    const headers = `Connection: Upgrade\r\nUpgrade: ${protocol}\r\n`;
    client.send(api.put('/k', '1', headers));
    await client.wholeAnswers(1);
    client.send(api.get('/k'));
    const [written, read] = await client.wholeAnswers(2);
    expect(written).toMatchObject({
      status: api.created,
      headers: expect.not.objectContaining({ upgrade: expect.anything() }),
    });
    expect(api.valueIn(read)).toBe('1');
    client.hangUp();
    await expectUnharmed(etcd);
  });

  test('a request that expects "100-continue" gets 100, then an answer to its body', async () => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    client.send(`${api.head}Expect: 100-continue\r\nContent-Length: ${api.body.length}\r\n\r\n`);
    await client.received('HTTP/1.1 100 Continue\r\n\r\n');
    expect(client.answers).toEqual([]);
    client.send(api.body);
    expect((await client.wholeAnswers(1))[0]?.status).toBe(api.created);
    client.hangUp();
    await expectUnharmed(etcd);
  });

  test('a client that hangs up after "100 Continue" without sending its body writes nothing', async () => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    client.send(`${api.head}Expect: 100-continue\r\nContent-Length: ${api.body.length}\r\n\r\n`);
    await client.received('HTTP/1.1 100 Continue\r\n\r\n');
    client.hangUp();
    await expectUnharmed(etcd);
    expect(api.writes(etcd)).toBe(0);
  });

  test('a request with any other expectation gets 417', async () => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    client.send(api.put('/k', '1', 'Expect: the-unexpected\r\n'));
    expect((await client.wholeAnswers(1))[0]?.status).toBe(417);
    client.hangUp();
    await expectUnharmed(etcd);
    expect(api.writes(etcd)).toBe(0);
  });

  test('after many bad clients, a good client still gets its value', async () => {
    const etcd = await serveOpenly();
    const good = await RawConnection.open(etcd.url);
    good.send(api.put('/k', '1'));
    await good.wholeAnswers(1);
    for (let round = 0; round < 5; round += 1) {
      const malformed = [...MALFORMED, ...malformedWrites(api.head, api.body)];
      const bad = await Promise.all(malformed.map(() => RawConnection.open(etcd.url)));
      for (const [i, client] of bad.entries()) client.send(malformed[i]?.[1] ?? '');
      await Promise.all(bad.map((client) => client.closed()));
    }
    good.send(api.get('/k'));
    const [, answer] = await good.wholeAnswers(2);
    expect([api.valueIn(answer), api.writes(etcd)]).toEqual(['1', 1]);
    good.hangUp();
    await expectUnharmed(etcd);
  });
});
