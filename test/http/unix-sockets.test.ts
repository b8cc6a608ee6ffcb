import { randomUUID } from 'node:crypto';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { ignore } from '../../src/base/cancellation.ts';
import {
  EtcdClient,
  type EtcdClientOptions,
  EtcdConnectionFailed,
  EtcdTlsFailed,
  EtcdWatchTimedOut,
  LockManager,
} from '../../src/index.ts';
import { ANY_API, APIS, EVERY_API } from '../support/apis.ts';
import { makeAuthority } from '../support/certificates.ts';
import { startEtcd } from '../support/etcd.ts';
import { freshName, queueOn, rejection } from '../support/locks.ts';
import { runScript } from '../support/script.ts';
import { temporaryDirectory } from '../support/temporary.ts';

/** With a timeout, a request is repeated until etcd has started. */
const WHILE_STARTING = { timeout: 60 };

/** Starts etcd with a Unix socket. etcd 3.4 accepts only relative paths with a colon. */
async function useSocket(scheme: 'unix' | 'unixs' = 'unix', ...args: string[]) {
  const is34 = inject('etcdVersion') === undefined;
  const file = is34 ? `${randomUUID()}:1` : join(temporaryDirectory(), 'etcd.sock');
  const etcd = await startEtcd({ alsoListen: [`${scheme}://${file}`], args });
  onTestFinished(() => etcd.stop());
  const listenOnlyThere = () => etcd.restart({ args: [`--listen-client-urls=${scheme}://${file}`], wait: false });
  return { etcd, path: is34 ? join(dirname(etcd.dataDir), file) : file, listenOnlyThere };
}

function useLocks(options: EtcdClientOptions, ttl = 30): LockManager {
  const client = new EtcdClient({ api: ANY_API, ...options });
  onTestFinished(() => client.close({ timeout: 0 }).catch(ignore));
  return new LockManager(client, { ttl });
}

describe.each(APIS)('with api %s, by a Unix socket', (api) => {
  test('a lock is acquired, waited for, and taken over', async () => {
    const { etcd, path } = await useSocket();
    const name = freshName();
    const held = await useLocks({ api, endpoints: `unix://${path}` }).acquire(name);
    const waiting = useLocks({ api, endpoints: [`unix://${path}`] }).acquire(name);
    if (api === 'v2') expect(await queueOn(name, etcd.url)).not.toEqual([]);
    expect(await held.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });

  test('a client fails over from a socket without a server to a URL', async () => {
    const { etcd } = await useSocket();
    const endpoints = [`unix://${join(temporaryDirectory(), 'none.sock')}`, etcd.url];
    const locks = useLocks({ api, endpoints, randomizeEndpoints: false });
    expect(await locks.request(freshName(), () => 'held')).toBe('held');
  });
});

describe('with TLS, by a Unix socket', () => {
  const authority = makeAuthority();
  const { ca } = authority;

  /** @param clients whether clients must present a certificate */
  async function useSecured(hosts: string[], { clients = false } = {}) {
    const directory = temporaryDirectory();
    const { cert, key } = authority.issue({ hosts });
    writeFileSync(join(directory, 'cert.pem'), cert);
    writeFileSync(join(directory, 'key.pem'), key);
    writeFileSync(join(directory, 'ca.pem'), ca);
    const files = [`--cert-file=${join(directory, 'cert.pem')}`, `--key-file=${join(directory, 'key.pem')}`];
    const asking = ['--client-cert-auth', `--trusted-ca-file=${join(directory, 'ca.pem')}`];
    return useSocket('unixs', ...files, ...(clients ? asking : []));
  }

  test('a lock is held on an etcd that asks for a certificate and listens nowhere else', async () => {
    const { path, listenOnlyThere } = await useSecured(['localhost'], { clients: true });
    await listenOnlyThere();
    const locks = useLocks({ api: EVERY_API, endpoints: `unixs://${path}`, ca, ...authority.issue() });
    expect(await locks.request(freshName(), WHILE_STARTING, () => 'held')).toBe('held');
  });

  test('the certificate must be for localhost, or for serverName', async () => {
    const local = await useSecured(['localhost']);
    const endpoints = `unixs://${local.path}`;
    expect(await useLocks({ endpoints, ca }).request(freshName(), () => 'held')).toBe('held');
    const other = await useSecured(['etcd.test']);
    const elsewhere = `unixs://${other.path}`;
    const named = useLocks({ endpoints: elsewhere, ca, serverName: 'etcd.test' });
    expect(await named.request(freshName(), () => 'held')).toBe('held');
    const error = await rejection(useLocks({ endpoints: elsewhere, ca }).acquire(freshName()));
    expect(error).toBeInstanceOf(EtcdTlsFailed);
    expect(error).toHaveProperty('message', expect.stringContaining('localhost'));
  });
});

describe('a Unix socket', () => {
  const failureOf = async (path: string): Promise<Error> => {
    const error = (await rejection(
      useLocks({ endpoints: `unix://${path}` }).acquire(freshName(), { timeout: 0.5 }),
    )) as EtcdWatchTimedOut;
    expect(error).toBeInstanceOf(EtcdWatchTimedOut);
    expect(error.reason).toBe('unreachable');
    const [failure] = error.failures;
    expect(failure).toMatchObject({ endpoint: `unix://${path}`, error: expect.any(EtcdConnectionFailed) });
    return failure?.error as Error;
  };

  test('that does not exist is an unreachable member', async () => {
    expect((await failureOf(join(temporaryDirectory(), 'none.sock'))).message).toContain('ENOENT');
  });

  test('that is an ordinary file is an unreachable member, and the error says what it may be', async () => {
    const path = join(temporaryDirectory(), 'file');
    writeFileSync(path, '');
    const { message } = await failureOf(path);
    expect(message).toMatch(/ECONNREFUSED.*; no server listens there, or the file is no socket$/);
  });

  test('without permission is an unreachable member', async () => {
    const { path } = await useSocket();
    chmodSync(path, 0);
    // Root may use every socket, so the script becomes another user.
    const { stdout } = await runScript(`
      import { EtcdClient, LockManager } from 'etcd-v2-lock';
      if (process.getuid() === 0) process.setuid(65534);
      const client = new EtcdClient({ endpoints: 'unix://${path}' });
      const error = await new LockManager(client).acquire('x', { timeout: 0.5 }).catch((error) => error);
      console.log(error.reason, error.failures[0].error.message);
      await client.close({ timeout: 0 });
    `);
    expect(stdout).toMatch(/^unreachable .*EACCES/);
  });

  test('is enough for a lock on an etcd that listens nowhere else', async () => {
    const { path, listenOnlyThere } = await useSocket();
    await listenOnlyThere();
    const locks = useLocks({ api: EVERY_API, endpoints: `unix://${path}` });
    expect(await locks.request(freshName(), WHILE_STARTING, () => 'held')).toBe('held');
  });

  test('that etcd leaves is used again when etcd comes back', async () => {
    const { etcd, path } = await useSocket();
    const held = await useLocks({ endpoints: `unix://${path}` }, 9).acquire(freshName());
    await etcd.kill();
    rmSync(path, { force: true });
    await etcd.restart();
    expect(await held.release()).toBe(true);
  });
});
