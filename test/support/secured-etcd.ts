import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Authority, Identity } from './certificates.ts';
import { makeDataDir, removeDataDir } from './data-dir.ts';
import { type EtcdMember, startEtcd } from './etcd.ts';
import { freePorts } from './ports.ts';

export interface TlsEtcd {
  /** Its own URL is in clear text. */
  readonly etcd: EtcdMember;
  /** Where it listens in TLS. */
  readonly url: string;
  /** From now on it has this certificate for each connection that resumes no earlier one. */
  present(identity: Identity): void;
}

/**
 * A real etcd behind TLS, stopped when the test ends.
 * @param clients whose certificates it asks of clients; without, it asks for none
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

/** May do everything, and changes the other's password. */
export const ROOT = { username: 'root', password: 'root has one' };
/** May do everything, too. */
export const APP = { username: 'app', password: 'right' };

/** The header these credentials make. */
export const basic = ({ username, password }: typeof ROOT): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

/** Switches etcd's authentication on: nobody may do anything without a password. */
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
