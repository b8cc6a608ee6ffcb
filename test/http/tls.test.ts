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

test('a member with a trusted certificate is asked', async () => {
  const etcd = await serveTls(server);
  expect((await connect({ endpoints: etcd.url, ca }).get(KEY)).node.value).toBe('u1');
  expect(etcd.requests).toBe(1);
});

const refusals: [string, ServerOptions, RegExp][] = [
  ['has an expired certificate', expired, /not trusted: certificate has expired/],
  ['has a certificate of an unknown authority', stranger.issue(), /not trusted: .*UNABLE_TO_VERIFY_LEAF_SIGNATURE/],
  ['has a certificate for another host', authority.issue({ hosts: ['elsewhere.test'] }), /not trusted: .*127\.0\.0\.1/],
  [
    'asks for a client certificate in TLS 1.3, after the request was sent',
    { ...server, ca, requestCert: true },
    /asks for a client certificate: .*CERTIFICATE_REQUIRED/,
  ],
  [
    'asks for a client certificate in TLS 1.2',
    { ...server, ca, requestCert: true, maxVersion: 'TLSv1.2' },
    /the server uses no TLS, or no TLS version or cipher in common: .*HANDSHAKE_FAILURE/,
  ],
];

describe.each(refusals)('a member that %s', (_, options, message) => {
  test('causes a permanent EtcdTlsFailed with a known outcome', async () => {
    const etcd = await serveTls(options);
    const error = await rejection(connect({ endpoints: etcd.url, ca }).createInOrder('/x', 'u1'), EtcdTlsFailed);
    expect(error.message).toMatch(message);
    expect(error.message).toContain(`${etcd.url}: `);
    expect(error.failures[0]?.error.cause).toBeInstanceOf(Error);
    expect([error.outcomeUnknown, isTransient(error)]).toEqual([false, false]);
    expect([etcd.connections, etcd.requests]).toEqual([1, 0]);
  });

  test('is skipped if another member is usable, even by an append', async () => {
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
  ['an unacceptable certificate', 46],
  ['a certificate of an unknown authority', 48],
  ['access', 49],
])('a server that refuses %s causes EtcdTlsFailed', async (_, number) => {
  const { url } = await serveBytes(alert(number));
  const error = await rejection(connect({ endpoints: url, ca, ...server }).get(KEY), EtcdTlsFailed);
  expect(error.message).toMatch(/the server refuses the client certificate: .* alert /);
});

test.each<[string, Uint8Array]>([
  ['that has no cipher in common', alert(40)],
  ['that has no version in common', alert(70)],
  ['that wants more security', alert(71)],
  ['that answers in clear text', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
])('a server %s causes EtcdTlsFailed', async (_, bytes) => {
  const { url } = await serveBytes(bytes);
  const error = await rejection(connect({ endpoints: url, ca }).get(KEY), EtcdTlsFailed);
  expect(error.message).toMatch(
    /the server uses no TLS, or no TLS version or cipher in common: [^:]+ \(ERR_SSL_\S+\)$/,
  );
});

test.each<[string, Uint8Array]>([
  ['with an internal error', alert(80)],
  ['that received corrupt bytes', alert(20)],
  ['that cancels', alert(90)],
  ['that closes the connection', new Uint8Array()],
])('a server %s during the handshake causes a transient error', async (_, bytes) => {
  const { url } = await serveBytes(bytes);
  const error = await rejection(connect({ endpoints: url, ca }).get(KEY), EtcdConnectionFailed);
  expect([error.outcomeUnknown, isTransient(error)]).toEqual([false, true]);
});

test('bytes that are not TLS after a request leave the outcome unknown', async () => {
  const [garbling, good] = [await serveGarbage(server), await serveTls(server)];
  const client = connect({ endpoints: [garbling.url, good.url], ca });
  const error = await rejection(client.createInOrder('/x', 'u1'), EtcdConnectionFailed);
  expect(error.message).toContain('ERR_SSL_');
  expect(error.outcomeUnknown).toBe(true);
  expect([garbling.requests, good.requests]).toEqual([1, 0]);
});

test('different TLS failures of all members cause one permanent error', async () => {
  const members = await Promise.all(refusals.map(([, options]) => serveTls(options)));
  const endpoints = members.map(({ url }) => url);
  const error = await rejection(connect({ endpoints, ca }).get(KEY), EtcdTlsFailed);
  expect(error.failures.map(({ endpoint }) => endpoint)).toEqual(endpoints);
  for (const [i, [, , message]] of refusals.entries()) expect(error.failures[i]?.error.message).toMatch(message);
  expect(isTransient(error)).toBe(false);
});

test('a TLS failure of one member and an unreachable other member cause a transient error', async () => {
  const { url } = await serveTls(expired);
  const endpoints = [url, await closedEndpoint()];
  const error = await rejection(connect({ endpoints, ca }).get(KEY), EtcdConnectionFailed);
  expect(error.message).toMatch(/certificate has expired.*ECONNREFUSED/);
  expect(isTransient(error)).toBe(true);
});

describe('etcd closes connections with the wrong protocol without an answer, so the error', () => {
  test('asks whether the server uses TLS', async () => {
    const endpoints = inject('etcd').replace('http:', 'https:');
    const error = await rejection(connect({ endpoints }).get(KEY), EtcdConnectionFailed);
    expect(error.message).toMatch(/ECONNRESET.*; does the server use TLS\?$/);
  });

  test('asks whether the server expects https', async () => {
    const { url } = await serve((socket) => void socket.end());
    const error = await rejection(connect({ endpoints: url }).get(KEY), EtcdConnectionFailed);
    expect(error.message).toMatch(/other side closed.*; does the server expect https\?$/);
  });

  test('asks nothing if the connection is closed in the middle of an answer', async () => {
    const { url } = await serve(answerThenCut('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf'));
    const error = await rejection(connect({ endpoints: url }).get(KEY), EtcdConnectionFailed);
    expect(error.message).not.toContain('?');
  });
});
