import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { makeAuthority } from '../../support/certificates.ts';
import { runCli } from '../../support/cli.ts';
import { closedEndpoint } from '../../support/clients.ts';
import { makeDataDir, removeDataDir } from '../../support/data-dir.ts';
import { diagnose, troubles } from '../../support/doctor.ts';
import { startEtcd } from '../../support/etcd.ts';
import { freshName, raw } from '../../support/locks.ts';
import { APP, basic, guard, ROOT, useTlsEtcd } from '../../support/secured-etcd.ts';
import { until } from '../../support/until.ts';

const matching = (text: RegExp) => expect.stringMatching(text);

async function useEtcd(args: readonly string[] = []) {
  const etcd = await startEtcd({ args });
  onTestFinished(() => etcd.stop());
  return etcd;
}

describe('a healthy cluster', () => {
  test('is reported as text, without colours outside of a terminal', async () => {
    // Of its own: other tests have locks in both stores of the shared one.
    const { url } = await useEtcd();
    const { code, stdout, stderr } = await runCli(['doctor', '--ttl', '600', '--endpoints', url]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.split('\n');
    expect(lines[0]).toBe(url);
    expect(lines).toEqual(
      expect.arrayContaining([
        matching(/^ {2}ok {4}reachable: member m1, etcd 3\.\d+\.\d+ \(cluster 3\.\d+\.0\)$/),
        '  ok    the v2 API is enabled',
        matching(/^ {2}ok {4}auth is off: everyone can read and write below \/_locks$/),
        matching(/^ {2}ok {4}the cluster ID is [0-9a-f]+$/),
        '  ok    the leader is m1',
        'Locks are safe to use.',
      ]),
    );
    expect(lines).toContainEqual(matching(/healthy; a quorum read takes [\d.]+ ms/));
  });

  test('is reported as JSON with all measurements', async () => {
    const { code, ok, endpoints } = await diagnose(inject('etcd'));
    expect({ code, ok }).toEqual({ code: 0, ok: true });
    expect(endpoints).toEqual([
      expect.objectContaining({
        endpoint: inject('etcd'),
        v2: { on: true },
        name: 'm1',
        healthy: true,
        auth: false,
        quorumReadMs: expect.any(Number),
        read: { is: 'done' },
        write: { is: 'done' },
        clock: { by: 'test key', earliest: expect.any(Number), latest: expect.any(Number) },
      }),
    ]);
    const [clock] = endpoints.map((member) => member.clock);
    // The server has the same clock as this process, so the bounds differ only by the duration of the request.
    expect(clock?.earliest).toBeLessThanOrEqual(0.01);
    expect(clock?.latest).toBeGreaterThanOrEqual(-0.01);
  });

  test('has no test key left', async () => {
    const etcd = await useEtcd();
    const { endpoints } = await diagnose(etcd.url);
    expect(endpoints).toEqual([expect.objectContaining({ testKey: matching(/^\/_etcd-v2-lock-doctor\/\d{20}$/) })]);
    expect((await raw('GET', '/_etcd-v2-lock-doctor', undefined, etcd.url)).status).toBe(404);
    expect((await raw('GET', '/_locks', undefined, etcd.url)).status).toBe(404);
  });
});

describe('the TTL for the assessment of clocks', () => {
  test('is the shortest remaining TTL of all entries', async () => {
    const etcd = await useEtcd();
    await raw('POST', `/_locks/${freshName()}`, { value: 'u1', ttl: '900' }, etcd.url);
    await raw('POST', `/_locks/a/${freshName()}`, { value: 'u2', ttl: '600' }, etcd.url);
    await raw('POST', `/_locks/${freshName()}`, { value: 'u3' }, etcd.url);
    const { basis } = await diagnose(etcd.url);
    expect(basis.ttl).toBeGreaterThan(500);
    expect(basis.ttl).toBeLessThanOrEqual(600);
  });

  test('is the value of --ttl, or the default TTL', async () => {
    const etcd = await useEtcd();
    expect((await diagnose(etcd.url)).basis).toMatchObject({ ttl: 30, margin: 3 });
    expect((await diagnose(etcd.url, ['--ttl', '60'])).basis).toMatchObject({ ttl: 60, margin: 6 });
  });

  test('must be positive', async () => {
    const { code, stderr } = await runCli(['doctor', '--ttl', '-1']);
    expect({ code, stderr }).toEqual({ code: 64, stderr: matching(/--ttl must be .*got -1/) });
  });
});

describe('an etcd without v2', () => {
  test('makes locks impossible, and the advice has the flag', async () => {
    const etcd = await useEtcd();
    await etcd.restart({ wait: false, args: ['--enable-v2=false'] });
    await until(
      () => isUp(etcd.url),
      (up) => up,
    );
    const diagnosis = await diagnose(etcd.url);
    expect(diagnosis.code).toBe(1);
    expect(troubles(diagnosis)).toMatchObject([
      { level: 'fail', about: 'v2', text: 'the v2 API is disabled', advice: 'start etcd with --enable-v2' },
    ]);
  });
});

describe('an etcd with authentication', () => {
  test('accepts the right password', async () => {
    const etcd = await useEtcd();
    await guard(etcd.url);
    const diagnosis = await diagnose(etcd.url, ['--user', APP.username], { ETCDCTL_PASSWORD: APP.password });
    expect(diagnosis.code).toBe(0);
    expect(troubles(diagnosis)).toEqual([]);
    expect(diagnosis.endpoints).toMatchObject([{ auth: true, guest: { read: false, write: false } }]);
    expect(diagnosis.findings).toContainEqual(
      expect.objectContaining({ level: 'ok', text: 'auth is on: user "app" can read and write below /_locks' }),
    );
  });

  test.each([
    [
      'a wrong password',
      ['--user', APP.username],
      { ETCDCTL_PASSWORD: 'guessed' },
      /user "app" cannot read or write/,
      /check the password/,
    ],
    ['no password', [], {}, /unauthenticated clients cannot read or write/, /use --user/],
  ])('denies reads and writes with %s', async (_, args, env, text, advice) => {
    const etcd = await useEtcd();
    await guard(etcd.url);
    const { code, stderr, findings } = await diagnose(etcd.url, args, env);
    expect(code).toBe(1);
    expect(findings).toContainEqual(
      expect.objectContaining({ level: 'fail', about: 'access', text: matching(text), advice: matching(advice) }),
    );
    expect(`${stderr}${JSON.stringify(findings)}`).not.toContain('guessed');
  });

  test('can permit a user to read locks only', async () => {
    const etcd = await useEtcd();
    await guard(etcd.url);
    await allow(etcd.url, 'reader', { read: ['/_locks/*'], write: [] });
    const { code, findings } = await diagnose(etcd.url, ['--user', 'reader'], { ETCDCTL_PASSWORD: 'reading' });
    expect(code).toBe(1);
    expect(findings).toContainEqual(
      expect.objectContaining({ level: 'fail', text: 'permission denied: user "reader" cannot write below /_locks' }),
    );
  });

  test('can restrict a user to the locks: then the clock is read from the Date header', async () => {
    const etcd = await useEtcd();
    await guard(etcd.url);
    await allow(etcd.url, 'locker', { read: ['/_locks/*'], write: ['/_locks/*'] });
    const diagnosis = await diagnose(etcd.url, ['--user', 'locker'], { ETCDCTL_PASSWORD: 'reading' });
    expect(diagnosis.code).toBe(0);
    expect(troubles(diagnosis)).toMatchObject([{ level: 'warn', about: 'test-key' }]);
    expect(diagnosis.endpoints).toMatchObject([{ clock: { by: 'Date header' } }]);
  });

  test('can permit access for guests, which is a warning', async () => {
    const etcd = await useEtcd();
    await guard(etcd.url);
    await change(etcd.url, 'roles/guest', { role: 'guest', grant: { kv: { read: ['/*'], write: ['/*'] } } });
    const diagnosis = await diagnose(etcd.url, ['--user', APP.username], { ETCDCTL_PASSWORD: APP.password });
    expect(diagnosis.code).toBe(0);
    expect(troubles(diagnosis)).toMatchObject([{ level: 'warn', about: 'guest', text: matching(/read and write/) }]);
  });
});

describe('an etcd with TLS', () => {
  test('is checked with the files from the command line', async () => {
    const authority = makeAuthority();
    const { url } = await useTlsEtcd(authority.issue(), authority);
    const own = authority.issue();
    const [ca, cert, key] = files(authority.ca, own.cert, own.key);
    // The member advertises another URL, but is recognized by its id.
    const diagnosis = await diagnose(url, ['--cacert', ca, '--cert', cert, '--key', key]);
    expect(troubles(diagnosis)).toEqual([]);
    expect(diagnosis.code).toBe(0);
  });

  test.each([
    ['that is not trusted', true, /certificate is not trusted/],
    ['that requires a client certificate', false, /asks for a client certificate/],
  ])('%s is a failure', async (_, strange, reason) => {
    const authority = makeAuthority();
    const { url } = await useTlsEtcd(authority.issue(), authority);
    const [ca] = files(strange ? makeAuthority().ca : authority.ca);
    const diagnosis = await diagnose(url, ['--cacert', ca]);
    expect(diagnosis.code).toBe(1);
    expect(troubles(diagnosis)).toMatchObject([
      { level: 'fail', about: 'reachable', endpoint: url, text: matching(reason), advice: matching(/--cacert/) },
    ]);
  });
});

test('each unreachable endpoint is reported with the reason', async () => {
  const [closed, unknown] = [await closedEndpoint(), 'http://no-such-host.invalid:2379'];
  const diagnosis = await diagnose([closed, unknown]);
  expect(diagnosis.code).toBe(1);
  expect(diagnosis.findings).toMatchObject([
    { level: 'fail', endpoint: closed, text: matching(/nothing listens at this address: .*ECONNREFUSED/) },
    { level: 'fail', endpoint: unknown, text: matching(/the host name cannot be resolved: .*no-such-host\.invalid/) },
  ]);
});

test('problem and advice are printed on two lines', async () => {
  const closed = await closedEndpoint();
  const { code, stdout } = await runCli(['doctor', '--endpoints', closed]);
  expect(code).toBe(1);
  expect(stdout.split('\n')).toEqual([
    closed,
    matching(/^ {2}fail {2}nothing listens at this address: connect ECONNREFUSED/),
    '        -> start etcd there, or correct --endpoints',
    '',
    'Locks are unsafe or impossible: 1 failure.',
    '',
  ]);
});

/** Whether the server reports its version, with or without the v2 API. */
const isUp = (url: string): Promise<boolean> =>
  fetch(`${url}/version`).then(
    ({ ok }) => ok,
    () => false,
  );

/** Creates a user with a role that has these permissions. The password is "reading". */
async function allow(url: string, user: string, kv: { read: string[]; write: string[] }): Promise<void> {
  await change(url, `roles/${user}`, { role: user, permissions: { kv } });
  await change(url, `users/${user}`, { user, password: 'reading', roles: [user] });
}

async function change(url: string, path: string, body: object): Promise<void> {
  const headers = { authorization: basic(ROOT) };
  const answer = await fetch(`${url}/v2/auth/${path}`, { method: 'PUT', headers, body: JSON.stringify(body) });
  expect(answer.ok, await answer.text()).toBe(true);
}

function files<T extends readonly string[]>(...texts: T): { [K in keyof T]: string } {
  const dir = makeDataDir();
  onTestFinished(() => removeDataDir(dir));
  return texts.map((text, at) => {
    const file = join(dir, `${at}.pem`);
    writeFileSync(file, text);
    return file;
  }) as { [K in keyof T]: string };
}
