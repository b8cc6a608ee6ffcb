// Connections that are not in use: how long they stay, and that they make way for others.
import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/time.ts';
import { makeAuthority } from '../support/certificates.ts';
import { type OpenServer, serveOpenly } from '../support/open-server.ts';
import { get, RawConnection } from '../support/raw-connection.ts';
import { until } from '../support/until.ts';
import { FRONTS } from './fronts.ts';

/** Opens a connection that has got the answer to a request. */
async function used(etcd: OpenServer): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  client.send(get('/'));
  await client.wholeAnswers(1);
  return client;
}

test.each(FRONTS)(
  'on %s, when all connections are taken, a new one replaces the one that is idle for the longest time',
  async (_name, api) => {
    const etcd = await serveOpenly(systemClock, { maxConnections: 3 });
    const first = await used(etcd);
    const second = await used(etcd);
    const waiter = await RawConnection.open(etcd.url);
    waiter.send(api.wait('/k'));
    await waiter.begun(1);
    first.send(get('/'));
    await first.wholeAnswers(2);
    const third = await used(etcd);
    await second.closed();
    await used(etcd);
    await first.closed();
    expect([waiter.socket.closed, third.socket.closed]).toEqual([false, false]);
    expect(await etcd.connections()).toBe(3);
  },
);

test.each(FRONTS)('on %s, a new connection replaces none that is in use or that is new itself', async (_name, api) => {
  const etcd = await serveOpenly(systemClock, { maxConnections: 2 });
  const waiter = await RawConnection.open(etcd.url);
  waiter.send(api.wait('/k'));
  await waiter.begun(1);
  const fresh = await RawConnection.open(etcd.url);
  const refused = await RawConnection.open(etcd.url);
  expect(await refused.closed()).toBe('');
  fresh.send(get('/'));
  await fresh.wholeAnswers(1);
  expect(waiter.socket.closed).toBe(false);
});

test.each(FRONTS)(
  'on %s, an idle connection is closed after the limit, but not one with a wait',
  async (_name, api) => {
    const etcd = await serveOpenly(systemClock, { idleTimeout: 0.3 });
    const waiter = await RawConnection.open(etcd.url);
    waiter.send(get('/') + api.wait('/k'));
    await waiter.begun(2);
    const client = await used(etcd);
    await client.closed();
    expect(waiter.socket.closed).toBe(false);
    api.set(etcd, '/k', 'now');
    await until(
      () => waiter.text,
      (text) => api.hasEvent(text, 'now'),
    );
    waiter.halfClose(); // ends a watch; a poll has ended
    await waiter.closed();
  },
);

test('over TLS, idle connections make way, and are closed after the limit', async () => {
  const authority = makeAuthority();
  const tls = authority.issue();
  const etcd = await serveOpenly(systemClock, { tls, maxConnections: 1, idleTimeout: 0.3 });
  const open = async () => {
    const socket = connectTls(Number(new URL(etcd.url).port), '127.0.0.1', { ca: authority.ca });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {}).write(get('/'));
    await once(socket, 'data');
    return socket.resume();
  };
  const first = await open();
  const second = await open();
  await until(
    () => [first.closed, second.closed],
    (closed) => closed.every(Boolean),
  );
});

test('a client that does not complete its TLS handshake is closed after the limit', async () => {
  const tls = makeAuthority().issue();
  const etcd = await serveOpenly(systemClock, { tls, handshakeTimeout: 0.3 });
  const client = await RawConnection.open(etcd.url);
  expect(await client.closed()).toBe('');
});
