import { expect, onTestFinished, test } from 'vitest';
import { EtcdInsufficientPermissions } from '../../src/errors.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { Lock } from '../../src/python/lock.ts';
import { V3Client } from '../../src/v3/client.ts';
import { entriesBelow } from '../support/gateway.ts';
import { freshName, rejection, useProxy } from '../support/locks.ts';
import { first } from '../support/lost-requests.ts';
import type { EtcdProxy, ProxiedRequest } from '../support/proxy.ts';
import { until } from '../support/until.ts';

const DENIED = { code: 7, message: 'etcdserver: permission denied' };

const isAppend = ({ path, body }: ProxiedRequest): boolean => path.endsWith('/kv/txn') && body.includes('request_put');
const isOfKeys = ({ path }: ProxiedRequest): boolean => path.includes('/kv/');

async function setUp() {
  const proxy = await useProxy();
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  return { proxy, client, name: freshName() };
}

/** Refuses the requests that match, until the function that it returns is called. */
function refuse(proxy: EtcdProxy, match: (request: ProxiedRequest) => boolean) {
  let count = 0;
  const permit = proxy.intercept((request) => {
    if (!match(request)) return undefined;
    count += 1;
    return { late: new Promise(() => {}), status: 403, body: DENIED };
  });
  return { permit, refused: () => count };
}

const untilEmpty = (name: string) =>
  until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 0,
  );

test('an entry that never expires is removed once etcd permits it again, however often it has refused', async () => {
  const { proxy, client, name } = await setUp();
  const lock = new Lock(client, name);
  await lock.acquire({ lockTtl: null });
  const { permit, refused } = refuse(proxy, isOfKeys);
  expect(await rejection(lock.release())).toBeInstanceOf(EtcdInsufficientPermissions);
  await until(refused, (count) => count >= 4);
  permit();
  await untilEmpty(name);
});

test('an entry of an unanswered append is removed once etcd permits it, if its lease is kept alive for another lock', async () => {
  const { proxy, client, name } = await setUp();
  // Long, so that no renewal of the lease, which reads both entries, is refused.
  const locks = new LockManager(client, { ttl: 300 });
  const other = await locks.acquire(freshName());
  proxy.intercept(first(1, isAppend, { swallow: true }));
  const answered = proxy.next(isAppend, 'answered');
  const isOfLock = ({ body }: ProxiedRequest): boolean =>
    [...body.matchAll(/"key":"([^"]*)"/g)].some(([, key = '']) => Buffer.from(key, 'base64').includes(name));
  const waiting = rejection(locks.acquire(name));
  await answered;
  const { permit, refused } = refuse(proxy, isOfLock);
  expect(await waiting).toBeInstanceOf(EtcdInsufficientPermissions);
  await until(refused, (count) => count >= 5);
  permit();
  await untilEmpty(name);
  expect(await other.release()).toBe(true);
});
