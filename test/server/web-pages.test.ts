// Requests that a browser sends for a web page must read and change nothing. Requests of all other clients are answered.
import { expect, test } from 'vitest';
import { refusalOf } from '../../src/server/front/web-pages.ts';
import { connect } from '../support/clients.ts';
import { expectUnharmed, serveOpenly } from '../support/open-server.ts';
import { RawConnection } from '../support/raw-connection.ts';
import { base64, post, V2, V3 } from './fronts.ts';

const FORM = 'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n';

/** Requests that write, read and remove keys, all with the given headers. */
const attack = (headers: string): readonly string[] => [
  `POST /v2/keys/queue HTTP/1.1\r\n${headers}${FORM}\r\nvalue=1`,
  `PUT /v2/keys/k HTTP/1.1\r\n${headers}${FORM}\r\nvalue=1`,
  `GET /v2/keys/secret HTTP/1.1\r\n${headers}\r\n`,
  `GET /v2/keys/secret?wait=true&waitIndex=4 HTTP/1.1\r\n${headers}\r\n`,
  `DELETE /v2/keys/secret HTTP/1.1\r\n${headers}\r\n`,
  `GET /version HTTP/1.1\r\n${headers}\r\n`,
  ...[
    V3.put('/k', '1'),
    V3.get('/secret'),
    V3.history('/secret'),
    post('/kv/deleterange', { key: base64('/secret') }),
    post('/lease/grant', { TTL: '60' }),
    post('/lease/keepalive', { ID: '1' }),
    post('/auth/user/add', { name: 'evil', password: 'evil' }),
  ].map((text) => text.replace('Host: localhost\r\n', headers)),
];

test.each([
  ['a form of a page on another site', 'Host: 127.0.0.1:2379\r\nOrigin: https://evil.example\r\n'],
  ['a form of a page without an origin', 'Host: localhost:2379\r\nOrigin: null\r\n'],
  ['a form of a page on another port', 'Host: localhost:2379\r\nOrigin: http://localhost:3000\r\n'],
  ['a form of a page on another local name', 'Host: localhost:2379\r\nOrigin: http://127.0.0.1:2379\r\n'],
  ['a page on another site', 'Host: 127.0.0.1:2379\r\nSec-Fetch-Site: cross-site\r\n'],
  ['a page on another port', 'Host: localhost:2379\r\nSec-Fetch-Site: same-site\r\n'],
  ['a page with an empty site', 'Host: localhost:2379\r\nSec-Fetch-Site:\r\n'],
  ['a page with two sites', 'Host: localhost:2379\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n'],
  ['a page with two origins', 'Host: localhost:1\r\nOrigin: http://localhost:1\r\nOrigin: http://evil.example\r\n'],
  ['a rebound name', 'Host: evil.example:2379\r\nOrigin: http://evil.example:2379\r\nSec-Fetch-Site: same-origin\r\n'],
  ['a rebound name without a port', 'Host: evil.example\r\n'],
  ['a rebound name of one label', 'Host: evil\r\n'],
  ['a rebound name that begins like an address', 'Host: 127.0.0.1.evil.example\r\n'],
  ['a rebound name that ends like a local one', 'Host: evil.localhost\r\n'],
  ['a rebound name in brackets', 'Host: [evil.example]:2379\r\n'],
])('%s gets 403, and reads and changes nothing', async (_, headers) => {
  const etcd = await serveOpenly();
  for (const api of [V2, V3]) api.set(etcd, '/secret', 'hidden');
  const client = await RawConnection.open(etcd.url);
  const requests = attack(headers);
  client.send(requests.join(''));
  const answers = await client.wholeAnswers(requests.length);
  expect(answers.map(({ status }) => status)).toEqual(requests.map(() => 403));
  for (const { body, headers: got } of answers) {
    expect(body).toMatch(/^403 Forbidden: /);
    expect(got).not.toHaveProperty('access-control-allow-origin');
  }
  for (const secret of ['hidden', base64('hidden')]) expect(client.text).not.toContain(secret);
  expect([V2, V3].map((api) => api.writes(etcd))).toEqual([1, 1]);
  expect([etcd.v3.leases.ids, etcd.member.auth.users]).toEqual([[], []]);
  client.hangUp();
  await expectUnharmed(etcd);
});

test.each([
  ...['localhost', 'LocalHost', 'localhost:2379', 'localhost:', '127.0.0.1', '127.0.0.1:2379', '127.8.8.8:1'],
  ...['[::1]', '[::1]:2379', '[fe80::1%25eth0]:80', '192.168.1.2:2379', '0.0.0.0:2379', '8.8.8.8', ''],
])('a request with the host %j is answered', async (host) => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(`PUT /v2/keys/k HTTP/1.1\r\nHost: ${host}\r\n${FORM}\r\nvalue=1`);
  client.send(`GET /v2/keys/k HTTP/1.1\r\nHost: ${host}\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n\r\n`);
  client.send(`GET /v2/keys/k HTTP/1.1\r\nHost: ${host}\r\nSec-Fetch-Mode: cors\r\n\r\n`);
  client.send(V3.put('/k', '1').replace('localhost', host));
  expect((await client.wholeAnswers(4)).map(({ status }) => status)).toEqual([201, 200, 200, 200]);
});

test('a script from the server’s own origin is allowed, and one from another port is not', () => {
  const own = { host: 'localhost:2379', origin: 'http://localhost:2379', 'sec-fetch-site': 'same-origin' };
  expect(refusalOf(own, ['127.0.0.1'])).toBeUndefined();
  expect(refusalOf({ ...own, origin: 'http://localhost' }, ['127.0.0.1'])).toBe(
    'web pages may not use this server, but the request has the origin "http://localhost"',
  );
});

test.each([
  ['etcd', 'etcd:2379', undefined],
  ['Etcd', 'eTCD', undefined],
  ['etcd', 'localhost:2379', undefined],
  ['etcd', '172.18.0.2:2379', undefined],
  ['etcd', 'other:2379', 'host "other:2379" is not allowed'],
  ['0.0.0.0', 'etcd:2379', 'host "etcd:2379" is not allowed'],
])('refusalOf() for a server with the host %s and a request for %s is %s', (ownHost, host, refusal) => {
  if (refusal === undefined) expect(refusalOf({ host }, [ownHost])).toBeUndefined();
  else expect(refusalOf({ host }, [ownHost])).toMatch(refusal);
});

test('an HTTP/1.0 request without a host is answered', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send('GET /version HTTP/1.0\r\n\r\n');
  await client.closed();
  expect(client.answers).toMatchObject([{ status: 200 }]);
});

test('the client of this package gets answers, and its error contains the reason of a 403', async () => {
  const etcd = await serveOpenly();
  const local = connect({ endpoints: etcd.url.replace('127.0.0.1', 'localhost') });
  await expect(local.set('/k', 'v')).resolves.toMatchObject({ action: 'set' });
  etcd.server.prependListener('request', (request) => {
    request.headers.host = 'evil.example';
  });
  await expect(local.get('/k')).rejects.toThrow('refused with 403: "403 Forbidden: host \\"evil.example\\" is not');
});
