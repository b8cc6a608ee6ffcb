import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EtcdConnectionFailed, EtcdInsufficientPermissions, Lock } from '../../src/index.ts';
import { startEtcd } from '../support/etcd.ts';
import { freshName, rejection, useClient } from '../support/locks.ts';
import { freePorts } from '../support/ports.ts';

describe('an etcd behind TLS', () => {
  async function startTls() {
    const [port] = await freePorts(1);
    const url = `https://127.0.0.1:${port}`;
    // It makes itself a certificate and signs it itself.
    const etcd = await startEtcd({ args: ['--auto-tls'], alsoListen: [url] });
    onTestFinished(() => etcd.stop());
    return { url, ca: readFileSync(join(etcd.dataDir, 'fixtures/client/cert.pem')) };
  }

  test('is locked and waited on, where its authority is trusted', async () => {
    const { url, ca } = await startTls();
    const name = freshName();
    const owner = new Lock(useClient({ endpoints: url, ca }), name);
    const waiter = new Lock(useClient({ endpoints: url, ca }), name);
    expect(await owner.acquire({ timeout: 20 })).toBe(true);
    const waiting = waiter.acquire({ timeout: 20 });
    await owner.release();
    expect(await waiting).toBe(true);
    await waiter.release();
  });

  test('is refused where it is not: certificates are verified by default', async () => {
    const { url } = await startTls();
    const error = await rejection(new Lock(useClient({ endpoints: url }), freshName()).acquire());
    expect(error).toBeInstanceOf(EtcdConnectionFailed);
    expect(error).toHaveProperty('message', expect.stringMatching(/self.signed/i));
  });
});

describe('an etcd that asks for a password', () => {
  async function startGuarded() {
    const etcd = await startEtcd();
    onTestFinished(() => etcd.stop());
    const put = async (path: string, body: unknown, headers = {}) => {
      const answer = await fetch(`${etcd.url}/v2/auth/${path}`, { method: 'PUT', body: JSON.stringify(body), headers });
      expect(answer.ok, await answer.text()).toBe(true);
    };
    await put('users/root', { user: 'root', password: 'right' });
    await put('enable', {});
    const authorization = `Basic ${Buffer.from('root:right').toString('base64')}`;
    // What nobody may do without a password.
    await put('roles/guest', { role: 'guest', revoke: { kv: { read: ['/*'], write: ['/*'] } } }, { authorization });
    return etcd.url;
  }

  test('is locked with the right one; a wrong or missing one is an error at once', async () => {
    const url = await startGuarded();
    const name = freshName();
    const lock = new Lock(useClient({ endpoints: url, username: 'root', password: 'right' }), name);
    expect(await lock.acquire({ timeout: 20 })).toBe(true);
    for (const credentials of [{ username: 'root', password: 'wrong' }, {}]) {
      const stranger = new Lock(useClient({ endpoints: url, ...credentials }), name);
      const error = await rejection(stranger.acquire({ timeout: 20 }));
      expect(error).toBeInstanceOf(EtcdInsufficientPermissions);
      expect(String(error)).not.toContain('wrong');
    }
    await lock.release();
  });
});
