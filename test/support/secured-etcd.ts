import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Authority, Identity } from './certificates.ts';
import { makeDataDir, removeDataDir } from './data-dir.ts';
import { type EtcdMember, startEtcd } from './etcd.ts';
import { freePorts } from './ports.ts';

export interface TlsEtcd {
  /** The member; its own URL is without TLS. */
  readonly etcd: EtcdMember;
  /** The https URL. */
  readonly url: string;
  /** Replaces the certificate for all connections that do not resume an earlier TLS session. */
  present(identity: Identity): void;
}

/**
 * Starts a real etcd with TLS; the end of the test stops it.
 * @param clients authority whose certificates clients must present; by default they need none
 */
export async function useTlsEtcd(identity: Identity, clients?: Authority): Promise<TlsEtcd> {
  const dir = makeDataDir();
  onTestFinished(() => removeDataDir(dir));
  const [cert, key, trusted] = [join(dir, 'cert.pem'), join(dir, 'key.pem'), join(dir, 'trusted.pem')];
  const present = (presented: Identity): void => {
    writeFileSync(cert, presented.cert);
    writeFileSync(key, presented.key);
  };
  present(identity);
  if (clients) writeFileSync(trusted, clients.ca);
  const [port] = await freePorts(1);
  const url = `https://127.0.0.1:${port}`;
  const clientCertificates = clients ? ['--client-cert-auth', `--trusted-ca-file=${trusted}`] : [];
  const args = [`--cert-file=${cert}`, `--key-file=${key}`, ...clientCertificates];
  const etcd = await startEtcd({ alsoListen: [url], args });
  onTestFinished(() => etcd.stop());
  return { etcd, url, present };
}

/** Has all permissions, and changes the password of `APP`. */
export const ROOT = { username: 'root', password: 'root has one' };
/** Has all permissions. */
export const APP = { username: 'app', password: 'right' };

/** The `Authorization` header for these credentials. */
export const basic = ({ username, password }: typeof ROOT): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

/** Enables etcd's authentication and revokes all permissions of guests. */
export async function guard(url: string): Promise<{ changePassword(password: string): Promise<void> }> {
  const authorization = basic(ROOT);
  const put = async (path: string, body: unknown): Promise<void> => {
    const init = { method: 'PUT', body: JSON.stringify(body), headers: { authorization } };
    const answer = await fetch(`${url}/v2/auth/${path}`, init);
    expect(answer.ok, await answer.text()).toBe(true);
  };
  await put('users/root', { user: ROOT.username, password: ROOT.password });
  await put('users/app', { user: APP.username, password: APP.password, roles: ['root'] });
  await put('enable', {});
  await put('roles/guest', { role: 'guest', revoke: { kv: { read: ['/*'], write: ['/*'] } } });
  return { changePassword: (password) => put('users/app', { user: APP.username, password }) };
}
