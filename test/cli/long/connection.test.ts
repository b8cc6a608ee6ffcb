import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { encrypted, makeAuthority } from '../../support/certificates.ts';
import { runCli, startCli } from '../../support/cli.ts';
import { closedEndpoint } from '../../support/clients.ts';
import { makeDataDir, removeDataDir } from '../../support/data-dir.ts';
import { type EtcdMember, startEtcd } from '../../support/etcd.ts';
import { raw } from '../../support/locks.ts';
import { APP, guard, useTlsEtcd } from '../../support/secured-etcd.ts';

/** Adds an entry to the queue of a lock with a unique name, which identifies this etcd. */
async function useHeldLock(etcd = inject('etcd'), prefix = '/_locks'): Promise<string> {
  const name = randomUUID();
  await raw('POST', `${prefix}/${name}`, { value: randomUUID(), ttl: '600' }, etcd);
  onTestFinished(async () => {
    await raw('DELETE', `${prefix}/${name}?recursive=true`, undefined, etcd).catch(() => {});
  });
  return name;
}

/** Creates files with these texts and returns their paths. */
function useFiles(...texts: string[]): string[] {
  const dir = makeDataDir();
  onTestFinished(() => removeDataDir(dir));
  return texts.map((text, index) => {
    const file = join(dir, String(index));
    writeFileSync(file, text);
    return file;
  });
}

/** Expects that the command prints the lock, which proves that it used this etcd. */
async function expectFound(name: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { code, stdout, stderr } = await runCli(args, env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain(name);
}

async function expectRefused(code: number, message: RegExp, args: readonly string[], env: Record<string, string> = {}) {
  const ended = await runCli(args, env);
  expect({ code: ended.code, stdout: ended.stdout }).toEqual({ code, stdout: '' });
  expect(ended.stderr).toMatch(message);
  expect(ended.stderr.split('\n')).toEqual([expect.stringMatching(/^etcd-v2-lock: /), '']);
  return ended.stderr;
}

describe('the command line connects', () => {
  const here = inject('etcd');
  const bare = new URL(here).host;

  test.each<[string, (nowhere: string) => [args: string[], env?: Record<string, string>]]>([
    ['by ETCD_ENDPOINTS', () => [['ls'], { ETCD_ENDPOINTS: here }]],
    ['by ETCDCTL_ENDPOINTS', () => [['ls'], { ETCDCTL_ENDPOINTS: here }]],
    ['by --endpoints before the command', (nowhere) => [['--endpoints', here, 'ls'], { ETCD_ENDPOINTS: nowhere }]],
    ['by --endpoints after the command', (nowhere) => [['ls', '--endpoints', here], { ETCD_ENDPOINTS: nowhere }]],
    ['to an endpoint without a scheme', () => [['ls', `--endpoints=${bare}`]]],
    ['to the second endpoint if the first is down', (nowhere) => [['ls', '--endpoints', `${nowhere}, ${bare}`]]],
  ])('%s', async (_, commandLine) => {
    const name = await useHeldLock();
    await expectFound(name, ...commandLine(await closedEndpoint()));
  });

  test('with another lock prefix', async () => {
    const prefix = `/_${randomUUID()}`;
    const name = await useHeldLock(here, prefix);
    await expectFound(name, ['ls', '--lock-prefix', prefix], { ETCD_ENDPOINTS: here });
  });
});

test('the exit code is 69 if etcd cannot be reached, and the message is one line with the address', async () => {
  const nowhere = await closedEndpoint();
  for (const args of [['ls'], ['inspect', 'x'], ['watch', 'x'], ['prune'], ['run', 'x', '-q', '--', 'true']]) {
    const refusal = await expectRefused(69, /ECONNREFUSED/, [args[0] ?? '', '--endpoints', nowhere, ...args.slice(1)]);
    expect(refusal).toContain(nowhere);
  }
});

test('an endpoint with credentials is bad usage, and the message hides the password', async () => {
  const refusal = await expectRefused(64, /endpoint must not contain credentials/, [
    'ls',
    '--endpoints',
    'a:secret@b:1',
  ]);
  expect(refusal).not.toContain('secret');
});

describe('an etcd with passwords', () => {
  let etcd: EtcdMember;
  let env: Record<string, string>;
  let changePassword: (password: string) => Promise<void>;
  const name = randomUUID();

  beforeAll(async () => {
    etcd = await startEtcd();
    await raw('POST', `/_locks/${name}`, { value: randomUUID() }, etcd.url);
    ({ changePassword } = await guard(etcd.url));
    env = { ETCD_ENDPOINTS: etcd.url };
  }, 60_000);

  afterAll(() => etcd.stop());

  test('accepts a password from a flag, a file or the environment', async () => {
    const both = `${APP.username}:${APP.password}`;
    const [file = ''] = useFiles(`${APP.password}\n`);
    await expectFound(name, ['ls', '--user', both], env);
    await expectFound(name, ['--username', both, 'ls'], env);
    await expectFound(name, ['--user', APP.username, 'ls', '--password', APP.password], env);
    await expectFound(name, ['ls', '--user', APP.username, '--password-file', file], env);
    await expectFound(name, ['ls', '--user', APP.username], { ...env, ETCDCTL_PASSWORD: APP.password });
    await expectFound(name, ['ls'], { ...env, ETCDCTL_USER: both });
    await expectFound(name, ['ls'], { ...env, ETCDCTL_USERNAME: APP.username, ETCDCTL_PASSWORD: APP.password });
    await expectFound(name, ['ls', '--user', both], { ...env, ETCDCTL_USER: 'app:guessed' });
  }, 240_000);

  test('is given the new password of a file while a command runs under a lock', async () => {
    const [file = '', end = ''] = useFiles(APP.password, '');
    onTestFinished(() => changePassword(APP.password));
    const wait = `echo started; while [ ! -s ${end} ]; do sleep 0.1; done`;
    const args = ['run', randomUUID(), '--ttl', '9', '--user', APP.username, '--password-file', file];
    const { process, result } = startCli([...args, '--', 'sh', '-c', wait], env);
    await once(process.stdout, 'data');
    await changePassword('changed');
    writeFileSync(file, 'changed\n');
    // Longer than the lease: with the old password, the lock would be lost, and the command be stopped.
    await sleep(10_000);
    writeFileSync(end, 'now');
    expect(await result).toMatchObject({ code: 0 });
  }, 120_000);

  test('rejects a wrong or missing password with exit code 77, and the password is not shown', async () => {
    const loud = { ...env, DEBUG: 'etcd-v2-lock:*', DEBUG_COLORS: '0' };
    for (const args of [
      ['ls', '--user', 'app:guessed'],
      ['ls', '--user', 'app', '--password', 'guessed'],
    ]) {
      expect(await expectRefused(77, /Insufficient credentials/, args, env)).not.toContain('guessed');
      const { code, stderr } = await runCli(args, loud);
      expect(code).toBe(77);
      expect(stderr).toContain('etcd-v2-lock:client');
      expect(stderr).not.toMatch(/guessed|Basic|YXBwOmd1ZXNzZWQ/);
    }
    await expectRefused(77, /Insufficient credentials/, ['ls'], env);
  }, 60_000);
});

describe('an etcd with TLS and client certificates', () => {
  const [authority, stranger] = [makeAuthority(), makeAuthority()];

  async function useGuarded() {
    const { cert, key } = authority.issue();
    const { etcd, url } = await useTlsEtcd(authority.issue(), authority);
    const name = await useHeldLock(etcd.url);
    const [ca = '', certFile = '', keyFile = '', otherCa = ''] = useFiles(authority.ca, cert, key, stranger.ca);
    return { name, url, ca, cert: certFile, key: keyFile, otherCa };
  }

  test('accepts files from the flags and variables of etcdctl, with https as the default scheme', async () => {
    const { name, url, ca, cert, key } = await useGuarded();
    const endpoints = new URL(url).host;
    const env = { ETCDCTL_ENDPOINTS: endpoints };
    const fromEnv = { ...env, ETCDCTL_CACERT: ca, ETCDCTL_CERT: cert, ETCDCTL_KEY: key };
    await expectFound(name, ['ls', '--cacert', ca, '--cert', cert, '--key', key], env);
    await expectFound(name, ['--ca-file', ca, '--cert-file', cert, '--key-file', key, 'ls'], env);
    await expectFound(name, ['ls'], fromEnv);
  });

  test('accepts the passphrase of an encrypted key from a file, and the name in the certificate', async () => {
    const { etcd, url } = await useTlsEtcd(authority.issue({ hosts: ['etcd.test'] }), authority);
    const name = await useHeldLock(etcd.url);
    const { cert, key } = authority.issue();
    const texts = [authority.ca, cert, encrypted(key, 'open it'), 'open it\n', 'guessed\n'];
    const [ca = '', certFile = '', keyFile = '', right = '', wrong = ''] = useFiles(...texts);
    const tls = ['--cacert', ca, '--cert', certFile, '--key', keyFile];
    const env = { ETCD_ENDPOINTS: url };
    const named = ['--tls-server-name', 'etcd.test'];
    await expectFound(name, ['ls', ...tls, '--key-passphrase-file', right, ...named], env);
    await expectRefused(77, /not trusted/, ['ls', ...tls, '--key-passphrase-file', right], env);
    await expectRefused(64, /key is encrypted: its passphrase is needed/, ['ls', ...tls, ...named], env);
    const guessed = ['ls', ...tls, '--key-passphrase-file', wrong];
    expect(await expectRefused(64, /key cannot be decrypted/, guessed, env)).not.toContain('guessed');
    await expectRefused(64, /serverName must be a host name/, ['ls', '--tls-server-name', '10.0.0.1'], env);
  });

  test('fails with exit code 77 if it is not trusted, or gets no client certificate, or one it does not trust', async () => {
    const { url, ca, cert, key, otherCa } = await useGuarded();
    const env = { ETCD_ENDPOINTS: url };
    await expectRefused(
      77,
      /certificate is not trusted/,
      ['ls', '--cacert', otherCa, '--cert', cert, '--key', key],
      env,
    );
    await expectRefused(77, /asks for a client certificate/, ['ls', '--cacert', ca], env);
    const other = stranger.issue();
    const [otherCert = '', otherKey = ''] = useFiles(other.cert, other.key);
    await expectRefused(
      77,
      /refuses the client certificate/,
      ['ls', '--cacert', ca, '--cert', otherCert, '--key', otherKey],
      env,
    );
    await expectRefused(77, /certificate is not trusted/, ['run', 'x', '-q', '--cacert', otherCa, '--', 'true'], env);
  });

  test('is not contacted if a file is missing or does not match: bad usage, and the message has the path', async () => {
    const { url, cert, key } = await useGuarded();
    const env = { ETCD_ENDPOINTS: url };
    expect(await expectRefused(64, /ENOENT/, ['ls', '--cacert', '/no/such.pem'], env)).toContain('"/no/such.pem"');
    expect(await expectRefused(64, /must be used together/, ['ls', '--cert', cert], env)).toContain(cert);
    await expectRefused(64, /must be a pair/, ['ls', '--cert', cert, '--key', cert], env);
    await expectRefused(
      64,
      /cannot be used together/,
      ['ls', '--user', 'a', '--password', 'b', '--password-file', key],
      env,
    );
  });
});
