import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Finding } from '../../../src/cli/doctor/facts.ts';
import { useAlteredMember } from '../../support/altered-member.ts';
import { makeAuthority } from '../../support/certificates.ts';
import { runCli } from '../../support/cli.ts';
import { serve, serveSilence } from '../../support/clients.ts';
import { type Diagnosis, diagnose, ownTroubles, troubles } from '../../support/doctor.ts';
import { type EtcdOptions, startEtcd } from '../../support/etcd.ts';
import { base64, gateway } from '../../support/gateway.ts';
import { raw } from '../../support/locks.ts';
import { useTlsEtcd } from '../../support/secured-etcd.ts';
import { httpAnswer } from '../../support/tcp-server.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';

const V3 = ['--api', 'v3'] as const;
const PATIENT = ['--ttl', '600'];
const matching = (text: RegExp) => expect.stringMatching(text);

async function useEtcd(options: EtcdOptions = {}) {
  const etcd = await startEtcd(options);
  onTestFinished(() => etcd.stop());
  return etcd;
}

/** Starts an etcd, then starts it again with further options, with which it may refuse locks. */
async function useEtcdWith(...args: string[]): Promise<string> {
  const etcd = await useEtcd();
  await etcd.restart({ wait: false, args });
  await until(
    () =>
      fetch(`${etcd.url}/health`).then(
        () => true,
        () => false,
      ),
    (up) => up,
  );
  return etcd.url;
}

const about = ({ findings }: Diagnosis, topic: string): Finding[] =>
  findings.filter((finding) => finding.about === topic);

/** Puts a key, with a lease of `ttl` seconds or without one. */
async function put(etcd: string, key: string, ttl?: number): Promise<void> {
  const { ID } = ttl === undefined ? { ID: '0' } : await gateway('/lease/grant', { TTL: String(ttl) }, etcd);
  await gateway('/kv/put', { key: base64(key), lease: ID }, etcd);
}

/** The revision of the v3 store, which each write increases. */
async function revisionOf(etcd: string): Promise<string> {
  const answer: object = await gateway('/kv/range', { key: base64('a') }, etcd);
  return (answer as { header: { revision: string } }).header.revision;
}

describe('a healthy etcd with both APIs', () => {
  test('is reported as text', async () => {
    const etcd = await useEtcd();
    const { code, stdout, stderr } = await runCli(['doctor', ...V3, ...PATIENT, '--endpoints', etcd.url]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.split('\n');
    expect(lines[0]).toBe(etcd.url);
    expect(lines).toEqual(
      expect.arrayContaining([
        matching(/^ {2}ok {4}reachable: member m1, etcd 3\.\d+\.\d+ \(cluster 3\.\d+\.0\)$/),
        '  ok    the v3 gateway is enabled',
        '  ok    the v2 API is enabled, too',
        matching(/^ {2}ok {4}healthy; a linearizable read takes [\d.]+ ms$/),
        '  ok    auth is off: everyone can read and write below /_locks',
        matching(/^ {2}ok {4}the cluster ID is [0-9a-f]+$/),
        '  ok    the leader is m1',
        '  ok    locks with entries: none in the v2 store; none in the v3 store',
        matching(/^(?:Locks are safe to use|No failure found, 1 warning)\.$/),
      ]),
    );
  });

  test('is reported as JSON, with all measurements that etcd v3 needs', async () => {
    const etcd = await useEtcd();
    await put(etcd.url, '/_locks/a/1', 60);
    await put(etcd.url, '/_locks/a/2', 90);
    await put(etcd.url, '/_locks/b/c/1', 90);
    const { stderr, ...diagnosis } = await diagnose(etcd.url, V3);
    const version = /^\d+\.\d+\.\d+$/;
    const id = expect.stringMatching(/^[0-9a-f]{1,16}$/);
    expect(stderr).toBe('');
    expect(diagnosis).toEqual({
      code: 0,
      ok: true,
      api: 'v3',
      basis: { ttl: 60, margin: 6, slowMs: 1000, from: matching(/^the shortest TTL of a lease below \/_locks/) },
      stores: { v2: [], v3: ['a', 'b/c'] },
      endpoints: [
        {
          endpoint: etcd.url,
          version: { server: matching(version), cluster: matching(version) },
          healthy: true,
          v2: { on: true },
          v2Content: [],
          v3: { on: true },
          id,
          name: 'm1',
          clusterId: id,
          leader: diagnosis.endpoints[0]?.id,
          members: [{ id: diagnosis.endpoints[0]?.id, name: 'm1', peerURLs: [etcd.peerUrl], clientURLs: [etcd.url] }],
          auth: false,
          read: { is: 'done' },
          write: { is: 'done' },
          quorumReadMs: expect.any(Number),
          ttls: [60, 90, 90],
          withoutLease: [],
        },
      ],
      findings: expect.any(Array),
    });
    expect(ownTroubles(diagnosis)).toEqual([]);
  });

  test('is the same after the check: nothing was written', async () => {
    const { url } = await useEtcd();
    const before = await revisionOf(url);
    await diagnose(url, V3);
    expect(await revisionOf(url)).toBe(before);
  });

  test('is checked for v3 if ETCD_LOCK_API says so, and any other value is refused', async () => {
    const etcd = await useEtcd();
    expect(await diagnose(etcd.url, [], { ETCD_LOCK_API: 'v3' })).toMatchObject({ code: 0, api: 'v3' });
    expect(await runCli(['doctor', '--api', 'v4', '--endpoints', etcd.url])).toMatchObject({
      code: 64,
      stderr: matching(/api must be "v2" or "v3", got "v4"/),
    });
  });

  test('has a finding on the gateway when it is checked for v2', async () => {
    const etcd = await useEtcd();
    const diagnosis = await diagnose(etcd.url, PATIENT);
    expect(about(diagnosis, 'v3')).toMatchObject([{ level: 'ok', text: 'the v3 gateway is enabled, too' }]);
    expect(about(diagnosis, 'stores')).toMatchObject([
      { level: 'ok', text: 'locks with entries: none in the v2 store; none in the v3 store' },
    ]);
  });
});

test('an etcd without the v2 API is healthy', async () => {
  const url = await useEtcdWith('--enable-v2=false');
  const diagnosis = await diagnose(url, [...V3, ...PATIENT]);
  expect(ownTroubles(diagnosis)).toEqual([]);
  expect(diagnosis.code).toBe(0);
  expect(about(diagnosis, 'v2')).toMatchObject([{ level: 'ok', text: 'no v2 API' }]);
  expect(about(diagnosis, 'stores')).toMatchObject([{ text: 'locks with entries: none in the v3 store' }]);
  expect(about(await diagnose(url), 'v3')).toMatchObject([
    { level: 'ok', text: 'the v3 gateway is enabled; use it with --api v3' },
  ]);
});

test('an etcd without the gateway makes locks impossible, and the advice has the flag', async () => {
  const etcd = await useEtcd({ args: ['--enable-grpc-gateway=false'] });
  const diagnosis = await diagnose(etcd.url, V3);
  expect(diagnosis.code).toBe(1);
  expect(troubles(diagnosis)).toMatchObject([
    {
      level: 'fail',
      about: 'v3',
      text: 'this port serves no v3 gateway',
      advice: matching(/--enable-grpc-gateway; .*--listen-client-http-urls/),
    },
  ]);
  const checkedForV2 = await diagnose(etcd.url, PATIENT);
  expect(checkedForV2.code).toBe(0);
  expect(about(checkedForV2, 'v3')).toMatchObject([{ level: 'ok', text: 'no v3 gateway' }]);
});

test('an etcd before 3.3 is refused', async () => {
  const body = JSON.stringify({ etcdserver: '3.2.32', etcdcluster: '3.2.0' });
  const url = await useAlteredMember((asked) => (asked.endsWith(' /version') ? { body } : undefined));
  const diagnosis = await diagnose(url, V3);
  expect(diagnosis.code).toBe(1);
  expect(troubles(diagnosis)).toMatchObject([
    { level: 'fail', about: 'v3', text: matching(/3\.2\.32.* too old/), advice: matching(/upgrade/) },
  ]);
});

test('another web server is not taken for an etcd', async () => {
  const page = { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>Welcome</html>' };
  const diagnosis = await diagnose(await useAlteredMember(() => page), V3);
  expect(diagnosis.code).toBe(1);
  expect(troubles(diagnosis)).toMatchObject([
    { about: 'v3', text: matching(/no v3 gateway: .*Welcome/), advice: matching(/no proxy in front of it/) },
  ]);
});

test('a server that answers nothing but its version is reported as silent', async () => {
  const { url } = await serve((socket, asked) => {
    if (asked.startsWith('GET /version ')) socket.write(httpAnswer(200, {}, '{"etcdserver":"3.4.23"}'));
  });
  const diagnosis = await diagnose(url, V3);
  expect(diagnosis.code).toBe(1);
  expect(troubles(diagnosis)).toMatchObject([
    { level: 'fail', about: 'v3', text: 'the v3 gateway did not respond in time', advice: matching(/check the log/) },
  ]);
});

describe('an etcd with authentication', () => {
  const key = base64('/_locks/');
  const end = base64('/_locks0');

  /** Creates these users, whose password is their name, with a permission for all locks, and enables authentication. */
  async function useGuarded(users: Record<string, 'READ' | 'READWRITE'>): Promise<string> {
    const { url } = await useEtcd();
    const ask = (path: string, message: object) => gateway(`/auth/${path}`, message, url);
    await ask('user/add', { name: 'root', password: 'root' });
    await ask('user/grant', { user: 'root', role: 'root' });
    for (const [name, permType] of Object.entries(users)) {
      await ask('user/add', { name, password: name });
      await ask('role/add', { name });
      await ask('role/grant', { name, perm: { permType, key, range_end: end } });
      await ask('user/grant', { user: name, role: name });
    }
    expect(await ask('enable', {})).not.toHaveProperty('error');
    return url;
  }

  const as = (url: string, user: string, password = user) =>
    diagnose(url, [...V3, ...PATIENT, '--user', user], { ETCDCTL_PASSWORD: password });

  test('accepts a user with permission for the locks, and no guests', async () => {
    const diagnosis = await as(await useGuarded({ app: 'READWRITE' }), 'app');
    expect(ownTroubles(diagnosis)).toEqual([]);
    expect(diagnosis.code).toBe(0);
    expect(diagnosis.endpoints).toMatchObject([{ auth: true, guest: { read: false, write: false } }]);
    expect(about(diagnosis, 'access')).toMatchObject([
      { level: 'ok', text: 'auth is on: user "app" can read and write below /_locks' },
    ]);
  });

  test('refuses a user who may only read, a wrong password, and no password', async () => {
    const url = await useGuarded({ reader: 'READ' });
    const [reader, guesser, nobody] = await Promise.all([
      as(url, 'reader'),
      as(url, 'reader', 'guessed'),
      diagnose(url, V3),
    ]);
    expect([reader, guesser, nobody].map(({ code }) => code)).toEqual([1, 1, 1]);
    expect(ownTroubles(reader)).toMatchObject([
      {
        level: 'fail',
        about: 'access',
        text: 'permission denied: user "reader" cannot write below /_locks',
        advice: matching(/readwrite access to the prefix \/_locks\//),
      },
    ]);
    expect(ownTroubles(guesser)).toMatchObject([
      { level: 'fail', text: matching(/user "reader" cannot read or write/), advice: matching(/check the password/) },
    ]);
    expect(JSON.stringify(guesser)).not.toContain('guessed');
    expect(ownTroubles(nobody)).toMatchObject([
      { level: 'fail', text: matching(/unauthenticated clients cannot read or write/), advice: matching(/use --user/) },
    ]);
  });
});

test('an etcd without authentication checks no credentials, which is a warning that names the user', async () => {
  const { url } = await useEtcd();
  const credentials = { ETCDCTL_PASSWORD: 'never-asked-for' };
  const diagnosis = await diagnose(url, [...V3, ...PATIENT, '--user', 'app'], credentials);
  expect(diagnosis.code).toBe(0);
  expect(ownTroubles(diagnosis)).toMatchObject([
    {
      level: 'warn',
      about: 'access',
      text: 'auth is off: user "app" is not checked, and everyone has access',
      advice: 'enable auth if access must be restricted',
    },
  ]);
  expect(diagnosis.endpoints).toMatchObject([{ auth: false, read: { is: 'done' }, write: { is: 'done' } }]);
  expect(diagnosis.endpoints[0]).not.toHaveProperty('guest');
  expect(JSON.stringify(diagnosis)).not.toContain(credentials.ETCDCTL_PASSWORD);
});

describe('the two stores', () => {
  test('with the same lock name are a warning, whichever API is checked', async () => {
    const { url } = await useEtcd();
    await raw('POST', '/_locks/jobs/both', { value: 'u1', ttl: '600' }, url);
    await raw('POST', '/_locks/only-v2', { value: 'u2', ttl: '600' }, url);
    await put(url, '/_locks/jobs/both/694d', 600);
    await put(url, '/_locks/only-v3/694d', 600);
    for (const args of [V3, []]) {
      const diagnosis = await diagnose(url, [...PATIENT, ...args]);
      expect(diagnosis).toMatchObject({
        code: 0,
        stores: { v2: ['jobs/both', 'only-v2'], v3: ['jobs/both', 'only-v3'] },
      });
      expect(ownTroubles(diagnosis)).toMatchObject([
        {
          level: 'warn',
          about: 'stores',
          text: matching(/same lock names: "jobs\/both"\./),
          advice: matching(/the same API/),
        },
      ]);
    }
  });
});

describe('a key without a lease', () => {
  test('in the queue of a lock is named in a warning', async () => {
    const { url } = await useEtcd();
    await put(url, '/_locks/jobs/config');
    await put(url, '/_locks/jobs/694d', 600);
    await put(url, '/elsewhere/config');
    const diagnosis = await diagnose(url, [...V3, ...PATIENT]);
    expect(diagnosis.code).toBe(0);
    expect(ownTroubles(diagnosis)).toMatchObject([
      {
        level: 'warn',
        about: 'leases',
        text: matching(/: "\/_locks\/jobs\/config"\./),
        advice: matching(/etcdctl del/),
      },
    ]);
  });

  test('counts without a lock prefix only if the queue has an entry with a lease', async () => {
    const { url } = await useEtcd();
    await put(url, '/elsewhere/config');
    await put(url, 'mine/config');
    await put(url, 'mine/694d', 600);
    const diagnosis = await diagnose(url, [...V3, ...PATIENT, '--lock-prefix', '']);
    expect(ownTroubles(diagnosis)).toMatchObject([{ about: 'leases', text: matching(/: "mine\/config"\./) }]);
    expect(diagnosis.endpoints).toMatchObject([{ withoutLease: ['mine/config'] }]);
  });
});

test('an etcd with TLS is checked with the file from the command line', async () => {
  const authority = makeAuthority();
  const { url } = await useTlsEtcd(authority.issue());
  const ca = join(temporaryDirectory(), 'ca.pem');
  writeFileSync(ca, authority.ca);
  // The member advertises another URL, which has the gateway, too.
  const diagnosis = await diagnose(url, [...V3, ...PATIENT, '--cacert', ca]);
  expect(ownTroubles(diagnosis)).toEqual([]);
  expect(diagnosis.code).toBe(0);
  expect(troubles(await diagnose(url, V3))).toMatchObject([{ about: 'reachable', text: matching(/not trusted/) }]);
});

test('a database that has reached its quota makes locks impossible', async () => {
  const url = await useEtcdWith('--quota-backend-bytes=4096');
  const diagnosis = await diagnose(url, [...V3, ...PATIENT]);
  expect(diagnosis.code).toBe(1);
  expect(about(diagnosis, 'access')).toMatchObject([
    { level: 'fail', text: matching(/writes fail: .*space exceeded/), advice: matching(/alarm disarm/) },
  ]);
});

describe('a port for gRPC alone', () => {
  /** Greets as an HTTP/2 server does. */
  const useGrpcPort = () => serveSilence('\0\0\x06\x04\0\0\0\0\0\0\x05\0\0\x40\0');

  test('is no endpoint', async () => {
    const { url } = await useGrpcPort();
    const diagnosis = await diagnose(url, V3);
    expect(diagnosis.code).toBe(1);
    expect(troubles(diagnosis)).toMatchObject([
      {
        level: 'fail',
        about: 'reachable',
        text: matching(/does not speak HTTP/),
        advice: matching(/client-http-urls/),
      },
    ]);
  });

  test('that a member advertises is a warning, although the endpoint has the gateway', async () => {
    const { url } = await useGrpcPort();
    const etcd = await useEtcd({ advertise: ({ peerUrl }) => ({ url, peerUrl }) });
    const diagnosis = await diagnose(etcd.url, [...V3, ...PATIENT]);
    expect(diagnosis.code).toBe(0);
    expect(ownTroubles(diagnosis)).toMatchObject([
      { level: 'warn', about: 'members', text: `member m1 advertises URLs without a v3 gateway: ${url}` },
    ]);
  });
});

test('a member may advertise another URL if that one has the gateway, too', async () => {
  const other = await useAlteredMember(() => undefined);
  const etcd = await useEtcd({ advertise: ({ peerUrl }) => ({ url: other, peerUrl }) });
  expect(ownTroubles(await diagnose(etcd.url, [...V3, ...PATIENT]))).toEqual([]);
});
