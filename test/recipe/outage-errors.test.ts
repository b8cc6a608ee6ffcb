// What the errors of waiters say when etcd goes away.
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { EtcdConnectionFailed, EtcdLockExpired, EtcdLockTimeout, Lock, LockManager } from '../../src/index.ts';
import { freshName, nextWatch, raw, rejection, useClient, useProxy } from '../support/locks.ts';

test('a request that times out in an outage has the failures of the members, also if it waits in its process', async () => {
  const proxy = await useProxy();
  const client = useClient({ endpoints: proxy.url });
  const locks = new LockManager(client, { ttl: 60 });
  const name = freshName();
  await raw('POST', `/_locks/${name}`, { value: 'holder', ttl: '600' });
  const watching = nextWatch(client);
  const queued = rejection(locks.request(name, { timeout: 6 }, () => {}));
  const behind = rejection(locks.request(name, { timeout: 5.5 }, () => {}));
  await watching;
  proxy.intercept(() => ({ refuse: true }));
  for (const error of await Promise.all([queued, behind])) {
    expect(error).toBeInstanceOf(EtcdLockTimeout);
    expect(error).toMatchObject({ holder: { value: 'holder' }, message: expect.stringContaining(proxy.url) });
    const { failures } = error as EtcdLockTimeout;
    expect(failures).toContainEqual({ endpoint: proxy.url, error: expect.any(EtcdConnectionFailed) });
    expect(inspect(error).split(proxy.url)).toHaveLength(2);
  }
  await raw('DELETE', `/_locks/${name}?recursive=true`);
});

test('a waiter whose entry expires in an outage has the failures of the members', async () => {
  const proxy = await useProxy();
  const name = freshName();
  const holder = new Lock(useClient(), name);
  await holder.acquire({ lockTtl: 600 });
  const client = useClient({ endpoints: proxy.url });
  const watching = nextWatch(client);
  const waiting = rejection(new Lock(client, name).acquire({ lockTtl: 3, timeout: 60 }));
  await watching;
  proxy.intercept(() => ({ refuse: true }));
  const error = await waiting;
  expect(error).toBeInstanceOf(EtcdLockExpired);
  expect(error).toMatchObject({ holder: { key: holder.lockKey } });
  const { failures } = error as EtcdLockExpired;
  expect(failures).toContainEqual({ endpoint: proxy.url, error: expect.any(EtcdConnectionFailed) });
  await holder.release();
});
