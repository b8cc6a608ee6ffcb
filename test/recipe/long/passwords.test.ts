import { describe, expect, onTestFinished, test } from 'vitest';
import { type EtcdClientOptions, EtcdInsufficientPermissions, EtcdLockLost, Lock } from '../../../src/index.ts';
import { aborted } from '../../suites/lock/locks.ts';
import { startEtcd } from '../../support/etcd.ts';
import { endOf, freshName, nextWatch, rejection, useClient, useProxy } from '../../support/locks.ts';
import { useManager } from '../../support/managers.ts';
import { APP, basic, guard, ROOT } from '../../support/secured-etcd.ts';
import { waysOfAsking } from '../../support/ways-of-asking.ts';

/** Starts an etcd that requires a password, behind a proxy. */
async function useGuardedEtcd() {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const { changePassword } = await guard(etcd.url);
  const proxy = await useProxy(etcd.url);
  return {
    changePassword,
    /** Returns how many requests with this method etcd has refused. */
    refused: (method: string) => proxy.requests.filter((r) => r.method === method && r.status === 401).length,
    requests: proxy.requests,
    app: { endpoints: proxy.url, ...APP } satisfies EtcdClientOptions,
    root: { endpoints: etcd.url, ...ROOT } satisfies EtcdClientOptions,
    endOf: (key: string) => endOf(key, etcd.url, { authorization: basic(ROOT) }),
  };
}

test('a client with the right password acquires a lock, waits for it and releases it', async () => {
  const { app, root } = await useGuardedEtcd();
  const name = freshName();
  const [owner, waiting] = [new Lock(useClient(root), name), useClient(app)];
  const waiter = new Lock(waiting, name);
  expect(await owner.acquire({ timeout: 20 })).toBe(true);
  const watching = nextWatch(waiting);
  const acquired = waiter.acquire({ timeout: 20 });
  await watching;
  await owner.release();
  expect(await acquired).toBe(true);
  await waiter.release();
  expect(await owner.contenders()).toEqual([]);
});

describe.each<[string, Partial<typeof APP>]>([
  ['wrong', { ...APP, password: 'guessed' }],
  ['missing', {}],
])('a %s password', (_, credentials) => {
  test('rejects every kind of acquire after its first answer, and leaves nothing to clean up', async () => {
    const { app, root, requests } = await useGuardedEtcd();
    const name = freshName();
    for (const [way, ask] of waysOfAsking) {
      const before = requests.length;
      const client = useClient({ endpoints: app.endpoints, ...credentials });
      const asked = performance.now();
      const error = await rejection(ask(client, name));
      expect(error, way).toBeInstanceOf(EtcdInsufficientPermissions);
      const seconds = (performance.now() - asked) / 1000;
      expect(String(error), way).not.toContain('guessed');
      const who = 'username' in credentials ? 'as user "app"' : '(no user name sent)';
      const what = `${app.endpoints}: no access to /_locks/${name} ${who}`;
      const why = 'The request requires user authentication (Insufficient credentials)';
      expect(error, way).toHaveProperty('message', `${what}: ${why}`);
      await client.close({ timeout: 0 });
      expect(requests[before], way).toMatchObject({ status: 401 });
      // While the first answer is late, a request is sent again each second.
      expect(requests.length - before, way).toBeLessThanOrEqual(1 + Math.floor(seconds));
    }
    expect(await new Lock(useClient(root), name).contenders()).toEqual([]);
  });
});

describe('when the password is changed on the server', () => {
  test('a hold with keepAlive is lost at its first refused renewal', async () => {
    const { app, changePassword, refused } = await useGuardedEtcd();
    const lock = new Lock(useClient(app), freshName());
    await lock.acquire({ lockTtl: 15, keepAlive: true });
    await changePassword('changed');
    expect(await aborted(lock.signal)).toBeInstanceOf(EtcdInsufficientPermissions);
    expect(lock.isTaken).toBe(false);
    expect(refused('PUT')).toBe(1);
  });

  test('a request whose callback still runs rejects with the loss and its cause', async () => {
    const { app, changePassword, refused } = await useGuardedEtcd();
    const request = useManager({ ttl: 9 }, app).request(freshName(), async ({ signal }) => {
      await changePassword('changed');
      await aborted(signal);
    });
    const error = await rejection(request);
    expect(error).toBeInstanceOf(EtcdLockLost);
    expect(error).toHaveProperty('cause', expect.any(EtcdInsufficientPermissions));
    expect(error).toHaveProperty(
      'message',
      expect.stringMatching(/\/_locks\/.* as user "app": .*Insufficient credentials/),
    );
    expect(refused('PUT')).toBe(1);
  });

  test('a release rejects at once, and the key is removed once the old password is valid again', async () => {
    const { app, changePassword, refused, endOf } = await useGuardedEtcd();
    const lock = new Lock(useClient(app), freshName());
    await lock.acquire({ lockTtl: 600 });
    const end = await endOf(lock.lockKey);
    await changePassword('changed');
    expect(await rejection(lock.release())).toBeInstanceOf(EtcdInsufficientPermissions);
    expect(refused('DELETE')).toBe(1);
    await changePassword(APP.password);
    expect(await end()).toBe('compareAndDelete');
  });

  test('a request whose callback has ended still resolves to its result, and the key is removed later', async () => {
    const { app, changePassword, endOf } = await useGuardedEtcd();
    let end = async () => 'unseen';
    const request = useManager({ ttl: 600 }, app).request(freshName(), async ({ key }) => {
      end = await endOf(key);
      await changePassword('changed');
      return 'done';
    });
    expect(await request).toBe('done');
    await changePassword(APP.password);
    expect(await end()).toBe('compareAndDelete');
  });

  test('a waiter rejects as soon as the holder releases', async () => {
    const { app, root, changePassword, refused } = await useGuardedEtcd();
    const name = freshName();
    const owner = new Lock(useClient(root), name);
    await owner.acquire();
    const client = useClient(app);
    const watching = nextWatch(client);
    const waiting = rejection(new Lock(client, name).acquire());
    await watching;
    await changePassword('changed');
    await owner.release();
    expect(await waiting).toBeInstanceOf(EtcdInsufficientPermissions);
    expect(refused('GET')).toBe(1);
  });
});
