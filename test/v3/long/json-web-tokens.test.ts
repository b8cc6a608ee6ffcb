import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../../src/client.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { makeDataDir, removeDataDir } from '../../support/data-dir.ts';
import { type EtcdMember, startEtcd } from '../../support/etcd.ts';
import { freshName, useProxy } from '../../support/locks.ts';
import { APP } from '../../support/secured-etcd.ts';
import { type GuardedV3, guardV3 } from '../../support/secured-v3.ts';
import { until } from '../../support/until.ts';

let dir: string;
let etcd: EtcdMember;
let guarded: GuardedV3;

beforeAll(async () => {
  dir = makeDataDir();
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const [pub, priv] = [join(dir, 'public.pem'), join(dir, 'private.pem')];
  writeFileSync(pub, publicKey.export({ type: 'spki', format: 'pem' }));
  writeFileSync(priv, privateKey.export({ type: 'pkcs1', format: 'pem' }));
  etcd = await startEtcd({ args: [`--auth-token=jwt,pub-key=${pub},priv-key=${priv},sign-method=RS256,ttl=10s`] });
});
afterAll(async () => {
  await etcd.stop();
  removeDataDir(dir);
});

/** A client with the right password, behind a proxy. */
async function setUp(ttl: number) {
  const proxy = await useProxy(etcd.url);
  const client = new EtcdClient({ api: 'v3', endpoints: proxy.url, ...APP });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  const answeredWith = (status: number) => () => proxy.requests.filter((one) => one.status === status).length;
  return {
    locks: new LockManager(client, { ttl }),
    proxy,
    /** How many requests were refused because the token had expired. */
    expired: answeredWith(401),
    /** How many were refused because users or roles were changed since the token was made. */
    outdated: answeredWith(400),
    logIns: () => proxy.requests.filter(({ path }) => path === '/v3/auth/authenticate').length,
  };
}

test('a hold continues when authentication is enabled while it is held', async () => {
  const { locks, proxy, logIns } = await setUp(12);
  const name = freshName();
  const held = await locks.acquire(name);
  guarded = await guardV3(etcd.url);
  // The first log-in found that authentication was not enabled.
  await until(logIns, (count) => count >= 2);
  const renewals = () => proxy.requests.filter(({ path }) => path === '/v3/lease/keepalive').length;
  const before = renewals();
  await until(renewals, (count) => count >= before + 2);
  held.assertHeld();
  expect(await held.release()).toBe(true);
  expect(await guarded.keysBelow(`/_locks/${name}/`)).toEqual([]);
});

test('a hold and a waiter outlive each change of users, and the life of their tokens', async () => {
  const [owner, waiter] = [await setUp(12), await setUp(12)];
  const name = freshName();
  const held = await owner.locks.acquire(name);
  const waiting = waiter.locks.acquire(name);
  await until(
    () => guarded.keysBelow(`/_locks/${name}/`),
    ({ length }) => length === 2,
  );
  for (const { outdated, expired } of [owner, waiter]) {
    while (outdated() === 0) {
      const before = expired();
      await guarded.asRoot('/auth/user/add', { name: freshName(), password: 'x' });
      // On a machine that stood still the token may have expired first: then the next one is outdated.
      await until(() => outdated() > 0 || expired() > before, Boolean);
    }
  }
  await until(owner.expired, (count) => count >= 1);
  held.assertHeld();
  await held.release();
  const next = await waiting;
  expect(next.fencingToken).toBeGreaterThan(held.fencingToken);
  expect(await next.release()).toBe(true);
});

test('a change of users while a call logs in again does not fail the call', async () => {
  // Long enough that no renewal is due.
  const { locks, proxy, logIns, outdated } = await setUp(60);
  await locks.request(freshName(), () => undefined);
  // Not a user: the hash of a password takes long on a busy machine.
  const change = () => guarded.asRoot('/auth/role/add', { name: freshName() });
  await change();
  let log = 0;
  // The new token is outdated as well before it is used.
  proxy.intercept(({ path }) => {
    if (path !== '/v3/auth/authenticate') return undefined;
    log += 1;
    return log === 1
      ? { answerAfter: until(() => proxy.requests.at(-1)?.status === 200, Boolean).then(change) }
      : undefined;
  });
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
  expect(logIns()).toBe(3);
  expect(outdated()).toBe(2);
});
