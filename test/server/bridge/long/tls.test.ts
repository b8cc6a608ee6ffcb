// HTTPS of the bridge's own.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { ignore } from '../../../../src/base/cancellation.ts';
import { EtcdClient } from '../../../../src/client.ts';
import { EtcdConnectionFailed } from '../../../../src/errors.ts';
import { LockManager } from '../../../../src/manager/manager.ts';
import { Bridge } from '../../../../src/server/bridge/bridge.ts';
import { encrypted, makeAuthority } from '../../../support/certificates.ts';
import { freshName, rejection } from '../../../support/locks.ts';
import { useTlsEtcd } from '../../../support/secured-etcd.ts';
import { temporaryDirectory } from '../../../support/temporary.ts';
import { until } from '../../../support/until.ts';
import { useBridge } from '../use-bridge.ts';

const authority = makeAuthority();
const identity = authority.issue();

function locksAt(url: string, tls: { ca: string; cert?: string; key?: string }): LockManager {
  const client = new EtcdClient({ endpoints: url, ...tls });
  // A bridge that refuses a certificate does not say so: the request may have been carried out.
  onTestFinished(() => client.close({ timeout: 0 }).catch(ignore));
  return new LockManager(client);
}

test('a bridge with a certificate serves HTTPS, long polls included', async () => {
  const bridge = await useBridge({ tls: identity });
  expect(bridge.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  const locks = locksAt(bridge.url, { ca: authority.ca });
  const name = freshName();
  const held = await locks.acquire(name);
  const next = locksAt(bridge.url, { ca: authority.ca }).request(name, ({ fencingToken }) => fencingToken);
  await held.release();
  expect(await next).toBeGreaterThan(held.fencingToken);
});

test('a bridge with an encrypted key and its passphrase serves HTTPS', async () => {
  const tls = { ...identity, key: encrypted(identity.key, 'open it'), passphrase: 'open it' };
  const bridge = await useBridge({ tls });
  expect(await locksAt(bridge.url, { ca: authority.ca }).request(freshName(), () => 'held')).toBe('held');
});

test('a bridge with certificates in files uses changed ones for new connections, and keeps the old ones if they are broken', async () => {
  const directory = temporaryDirectory();
  const [certFile, keyFile, caFile] = ['cert', 'key', 'ca'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  const write = ({ cert, key }: typeof identity): void => {
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
  };
  const clients = makeAuthority();
  const known = clients.issue();
  write(identity);
  writeFileSync(caFile, clients.ca);
  const bridge = await useBridge({ tls: { certFile, keyFile, caFile } });
  const held = await locksAt(bridge.url, { ca: authority.ca, ...known }).acquire(freshName());
  const serves = async (ca: string): Promise<boolean> => {
    const locks = locksAt(bridge.url, { ca, ...known });
    return locks.request(freshName(), { timeout: 5 }, () => true).catch(() => false);
  };
  const next = makeAuthority();
  write(next.issue());
  await until(() => serves(next.ca), Boolean);
  expect(await serves(authority.ca)).toBe(false);
  const warned = once(process, 'warning') as Promise<[Error]>;
  write({ cert: 'half a certifi', key: identity.key });
  expect((await warned)[0].message).toContain('the old certificates stay in use');
  expect(await serves(next.ca)).toBe(true);
  write(identity);
  await until(() => serves(authority.ca), Boolean);
  held.assertHeld();
  expect(await held.release()).toBe(true);
});

test('with authorities, a client needs a certificate of one of them', async () => {
  const clients = makeAuthority();
  const bridge = await useBridge({ tls: { ...identity, ca: clients.ca } });
  const name = freshName();
  const known = locksAt(bridge.url, { ca: authority.ca, ...clients.issue() });
  expect(await known.request(name, () => 'held')).toBe('held');
  for (const stranger of [{}, makeAuthority().issue()]) {
    const error = await rejection(locksAt(bridge.url, { ca: authority.ca, ...stranger }).acquire(name));
    expect(error).toBeInstanceOf(EtcdConnectionFailed);
    expect(error).toHaveProperty('message', expect.stringMatching(/client certificate|closed|ECONNRESET/));
  }
});

test('a bridge reaches an etcd that asks for a client certificate', async () => {
  const etcd = await useTlsEtcd(identity, authority);
  const bridge = await useBridge({ endpoints: etcd.url, ca: authority.ca, ...authority.issue({ unnamed: true }) });
  expect(await locksAt(bridge.url, { ca: authority.ca }).request(freshName(), () => 'held')).toBe('held');
});

test('a header that offers an upgrade is ignored over HTTPS, too', async () => {
  const bridge = await useBridge({ tls: identity });
  const headers = { connection: 'Upgrade', upgrade: 'h2c' };
  const [response] = (await once(get(`${bridge.url}/v2/machines`, { ca: authority.ca, headers }), 'response')) as [
    IncomingMessage,
  ];
  expect(await text(response)).toBe(bridge.url);
});

test.each([
  [{ cert: identity.cert }, /cert and key must be given together, got only cert/],
  [{ key: identity.key }, /cert and key must be given together, got only key/],
  [{}, /tls must have cert and key/],
  [{ ...identity, ca: 'ca.pem' }, /ca must be certificates as PEM text \(not the path of a file\), got "ca.pem"/],
  [{ ...identity, key: authority.issue().key }, /cert and key must be a pair/],
  [{ ...identity, key: encrypted(identity.key, 'open it') }, /key is encrypted: its passphrase is needed/],
  [
    { ...identity, key: encrypted(identity.key, 'open it'), passphrase: identity.key.split('\n')[1] },
    /key cannot be decrypted: its passphrase is another one/,
  ],
  [{ ...identity, crt: '' }, /crt/],
  ['on', /tls must be an object, got "on"/],
])('invalid TLS options are refused, and no private key is shown', async (tls, message) => {
  const error = await rejection(Bridge.start({ endpoints: inject('etcd'), tls: tls as never }));
  expect(error).toHaveProperty('message', expect.stringMatching(message));
  expect(String(error)).not.toContain(identity.key.split('\n')[1]);
});

test('a bridge stops although a client has not completed its TLS handshake', async () => {
  const bridge = await useBridge({ tls: identity });
  const socket = connect(Number(new URL(bridge.url).port), '127.0.0.1').on('error', ignore);
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  // Accepts connections in order: the one above is accepted then.
  await locksAt(bridge.url, { ca: authority.ca }).request(freshName(), () => 'held');
  const stopped = bridge.stop().then(() => 'stopped');
  expect(await Promise.race([stopped, sleep(60_000, 'not stopped', { ref: false })])).toBe('stopped');
});
