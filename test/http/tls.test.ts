import type { ServerOptions } from 'node:https';
import { describe, expect, inject, test } from 'vitest';
import { EtcdConnectionFailed, EtcdTlsFailed, isTransient } from '../../src/errors.ts';
import { makeAuthority } from '../support/certificates.ts';
import { closedEndpoint, connect, rejection, serve } from '../support/clients.ts';
import { answerThenCut } from '../support/tcp-server.ts';
import { alert, serveBytes, serveGarbage, serveTls } from '../support/tls-server.ts';

const KEY = '/_locks/x/00000000000000000004';
const [authority, stranger] = [makeAuthority(), makeAuthority()];
const { ca } = authority;
const [server, expired] = [authority.issue(), authority.issue({ expired: true })];

test('a member whose certificate is trusted is asked', async () => {
  const etcd = await serveTls(server);
  expect((await connect({ endpoints: etcd.url, ca }).get(KEY)).node.value).toBe('u1');
  expect(etcd.requests).toBe(1);
});

const refusals: [string, ServerOptions, RegExp][] = [
  ['has an expired certificate', expired, /not trusted: certificate has expired/],
  ['has one of an unknown authority', stranger.issue(), /not trusted: .*UNABLE_TO_VERIFY_LEAF_SIGNATURE/],
  ['has one for another host', authority.issue({ hosts: ['elsewhere.test'] }), /not trusted: .*127\.0\.0\.1/],
  [
    'asks for a client certificate, in TLS 1.3 once the request was sent',
    { ...server, ca, requestCert: true },
    /asks for a client certificate: .*CERTIFICATE_REQUIRED/,
  ],
  [
    'asks for a client certificate in TLS 1.2',
    { ...server, ca, requestCert: true, maxVersion: 'TLSv1.2' },
    /no TLS that we do: .*HANDSHAKE_FAILURE/,
  ],
];

describe.each(refusals)('a member that %s', (_, options, message) => {
  test('is told as what it is: nothing was done, and more tries would not help', async () => {
    const etcd = await serveTls(options);
    const error = await rejection(connect({ endpoints: etcd.url, ca }).createInOrder('/x', 'u1'), EtcdTlsFailed);
    expect(error.message).toMatch(message);
    expect(error.message).toContain(`${etcd.url}: `);
    expect(error.cause).toBeInstanceOf(Error);
    expect([error.outcomeUnknown, isTransient(error)]).toEqual([false, false]);
    expect([etcd.connections, etcd.requests]).toEqual([1, 0]);
  });

  test('is passed over where another one is good, by an append too', async () => {
    const [bad, good] = [await serveTls(options), await serveTls(server)];
    const client = connect({ endpoints: [bad.url, good.url], ca });
    await client.createInOrder('/x', 'u1');
    await client.get(KEY);
    expect([bad.connections, good.requests]).toEqual([1, 2]);
  });
});

test.each<[string, number]>([
  ['a bad certificate', 42],
  ['a certificate of the wrong kind', 43],
  ['a revoked certificate', 44],
  ['an expired certificate', 45],
  ['a certificate it does not like', 46],
  ['a certificate of an unknown authority', 48],
  ['who we are', 49],
])('a server that refuses %s is told as that', async (_, number) => {
  const { url } = await serveBytes(alert(number));
  const error = await rejection(connect({ endpoints: url, ca, ...server }).get(KEY), EtcdTlsFailed);
  expect(error.message).toMatch(/it refuses our certificate: .* alert /);
});

test.each<[string, Uint8Array]>([
  ['that has no cipher in common', alert(40)],
  ['that has no version in common', alert(70)],
  ['that wants more security', alert(71)],
  ['that answers in clear text', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
])('a server %s is told as one without our TLS', async (_, bytes) => {
  const { url } = await serveBytes(bytes);
  const error = await rejection(connect({ endpoints: url, ca }).get(KEY), EtcdTlsFailed);
  expect(error.message).toMatch(/speaks no TLS that we do: [^:]+ \(ERR_SSL_\S+\)$/);
});

test.each<[string, Uint8Array]>([
  ['that cannot read its certificate just now', alert(80)],
  ['that got garbled bytes', alert(20)],
  ['that gave up', alert(90)],
  ['that goes away', new Uint8Array()],
])('a server %s during the handshake may do better later', async (_, bytes) => {
  const { url } = await serveBytes(bytes);
  const error = await rejection(connect({ endpoints: url, ca }).get(KEY), EtcdConnectionFailed);
  expect([error.outcomeUnknown, isTransient(error)]).toEqual([false, true]);
});

test('what is no TLS behind a request leaves open whether that was carried out', async () => {
  const [garbling, good] = [await serveGarbage(server), await serveTls(server)];
  const client = connect({ endpoints: [garbling.url, good.url], ca });
  const error = await rejection(client.createInOrder('/x', 'u1'), EtcdConnectionFailed);
  expect(error.message).toContain('ERR_SSL_');
  expect(error.outcomeUnknown).toBe(true);
  expect([garbling.requests, good.requests]).toEqual([1, 0]);
});

test('members that refuse for different reasons of this kind are a lasting trouble all the same', async () => {
  const members = await Promise.all(refusals.map(([, options]) => serveTls(options)));
  const endpoints = members.map(({ url }) => url);
  const error = await rejection(connect({ endpoints, ca }).get(KEY), EtcdTlsFailed);
  expect(error.failures.map(({ endpoint }) => endpoint)).toEqual(endpoints);
  for (const [i, [, , message]] of refusals.entries()) expect(error.failures[i]?.error.message).toMatch(message);
  expect(isTransient(error)).toBe(false);
});

test('where one refuses and another is away, the trouble may pass', async () => {
  const { url } = await serveTls(expired);
  const endpoints = [url, await closedEndpoint()];
  const error = await rejection(connect({ endpoints, ca }).get(KEY), EtcdConnectionFailed);
  expect(error.message).toMatch(/certificate has expired.*ECONNREFUSED/);
  expect(isTransient(error)).toBe(true);
});

describe('etcd says nothing where the protocol is wrong, so the error asks', () => {
  test('of one that is asked in TLS whether it speaks that', async () => {
    const endpoints = inject('etcd').replace('http:', 'https:');
    const error = await rejection(connect({ endpoints }).get(KEY), EtcdConnectionFailed);
    expect(error.message).toMatch(/ECONNRESET.*; does it speak TLS\?$/);
  });

  test('of one that is asked in clear text whether it wants TLS', async () => {
    const { url } = await serve((socket) => void socket.end());
    const error = await rejection(connect({ endpoints: url }).get(KEY), EtcdConnectionFailed);
    expect(error.message).toMatch(/other side closed.*; does it want https\?$/);
  });

  test('but not of one that breaks off in the middle of an answer', async () => {
    const { url } = await serve(answerThenCut('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'));
    const error = await rejection(connect({ endpoints: url }).get(KEY), EtcdConnectionFailed);
    expect(error.message).not.toContain('?');
  });
});
