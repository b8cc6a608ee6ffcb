import { describe, expect, onTestFinished, test } from 'vitest';
import { EtcdClient, type EtcdClientOptions } from '../../../src/client.ts';
import { EtcdConnectionFailed, EtcdInsufficientPermissions, EtcdTlsFailed } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { makeAuthority } from '../../support/certificates.ts';
import { entriesBelow } from '../../support/gateway.ts';
import { freshName, rejection } from '../../support/locks.ts';
import { runScript } from '../../support/script.ts';
import { APP, useTlsEtcd } from '../../support/secured-etcd.ts';
import { guardV3 } from '../../support/secured-v3.ts';
import { serveTls } from '../../support/tls-server.ts';
import { until } from '../../support/until.ts';
import { waysOfAsking } from '../../support/ways-of-asking.ts';

const [authority, stranger] = [makeAuthority(), makeAuthority()];
const { ca } = authority;
const [trusted, named, unnamed] = [authority.issue(), authority.issue(), authority.issue({ unnamed: true })];

function connect(options: EtcdClientOptions): EtcdClient {
  const client = new EtcdClient({ api: 'v3', ...options });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return client;
}

const useLocks = (options: EtcdClientOptions): LockManager => new LockManager(connect(options), { ttl: 6 });

test('on an etcd that requires client certificates, a client needs a trusted one, and without a common name to log in', async () => {
  const { etcd, url } = await useTlsEtcd(trusted, authority);
  const name = freshName();

  const [owner, waiter] = [useLocks({ endpoints: url, ca, ...named }), useLocks({ endpoints: url, ca, ...unnamed })];
  const held = await owner.acquire(name);
  expect(await entriesBelow(`/_locks/${name}/`, etcd.url)).toMatchObject([{ key: held.key }]);
  const waiting = waiter.acquire(name);
  await held.release();
  expect(await (await waiting).release()).toBe(true);

  const refused = await rejection(useLocks({ endpoints: url, ca }).acquire(name, { timeout: 5 }));
  expect(refused).toBeInstanceOf(EtcdTlsFailed);
  expect(refused).toHaveProperty('message', expect.stringContaining('asks for a client certificate'));
  const distrusted = await rejection(
    useLocks({ endpoints: url, ca, ...stranger.issue() }).acquire(name, { timeout: 5 }),
  );
  expect(distrusted).toHaveProperty('message', expect.stringContaining('refuses the client certificate'));

  await guardV3(etcd.url);
  for (const [way, ask] of waysOfAsking)
    for (const credentials of [APP, {}]) {
      const error = await rejection(ask(connect({ endpoints: url, ca, ...named, ...credentials }), name));
      expect(error, way).toBeInstanceOf(EtcdInsufficientPermissions);
      expect(error, way).toHaveProperty('message', expect.stringMatching(/common name \(CN\): use one without/));
    }
  const locks = useLocks({ endpoints: url, ca, ...unnamed, ...APP });
  expect(await locks.request(name, () => 'held')).toBe('held');
});

test('a server certificate that the gateway cannot use as a client certificate is named as the possible cause', async () => {
  const { etcd, url, present } = await useTlsEtcd(trusted, authority);
  const version = await etcd.version();
  present(authority.issue({ serverOnly: true }));
  // From etcd 3.5 on, the gateways of all URLs connect to one of them, and would work if that is the one without TLS.
  // The URL is given twice, because etcd ignores a value that was part of an earlier one.
  await etcd.restart({ wait: false, args: [`--listen-client-urls=${url},${url}`] });
  const ask = () => {
    // A new client: the requests of one are limited after failures. A read waits longer for an answer than an append, and a busy
    // machine needs that.
    const locks = useLocks({ endpoints: url, ca, ...named });
    return rejection(locks.request(freshName(), { ifAvailable: true }, () => undefined));
  };
  // The gateway's client has one text for each moment at which it notices the refusal, and further ones while etcd starts.
  const text = version.startsWith('3.4.')
    ? 'connection closed|use of closed network connection'
    : 'connection error: .*tls: bad certificate"|write .*: broken pipe';
  const expected = new RegExp(
    `answered: (${text}) \\(.*--client-cert-auth.* lack the extended key usage clientAuth\\?`,
  );
  const error = await until(ask, (reason) => expected.test(String(reason)));
  expect(error).toBeInstanceOf(EtcdConnectionFailed);
});

describe('a server whose certificate is not trusted', () => {
  test('gets no request, and each kind of acquire connects once', async () => {
    for (const [way, ask] of waysOfAsking) {
      const server = await serveTls(stranger.issue());
      const error = await rejection(ask(connect({ endpoints: server.url, ca, ...APP }), 'x'));
      expect(error, way).toBeInstanceOf(EtcdTlsFailed);
      expect([server.connections, server.requests], way).toEqual([1, 0]);
    }
  });

  test('gets no request with NODE_TLS_REJECT_UNAUTHORIZED=0 either', async () => {
    const server = await serveTls(stranger.issue());
    const options = { endpoints: server.url, ca, username: 'root', password: 'secret' };
    const script = `
      import { V3Client } from './dist/v3/client.js';
      const client = new V3Client(${JSON.stringify(options)});
      const alive = setInterval(() => {}, 1_000);
      const { entries, leases, watches } = client.requests;
      const calls = [
        entries.get('/x', {}),
        leases.grant('7', 5, {}),
        watches.changed('/x/y', { from: 1n }),
        leases.revoke('7', { background: true }),
      ];
      const results = await Promise.allSettled(calls);
      console.log(JSON.stringify(results.map(({ reason }) => reason?.code ?? 'answered')));
      clearInterval(alive);
      await client.close();
    `;
    const { code, stdout, stderr } = await runScript(script, { NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toEqual(Array(4).fill('ETCD_TLS_FAILED'));
    expect(server.connections).toBeGreaterThanOrEqual(1);
    expect(server.requests).toBe(0);
  });
});
