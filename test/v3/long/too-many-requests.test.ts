import { expect, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../../src/client.ts';
import { EtcdConnectionFailed } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { useAlteredMember } from '../../support/altered-member.ts';
import { entriesBelow } from '../../support/gateway.ts';
import { freshName, rejection } from '../../support/locks.ts';
import { until } from '../../support/until.ts';

const TOO_MANY = {
  status: 429,
  body: JSON.stringify({ error: 'etcdserver: too many requests', message: 'etcdserver: too many requests', code: 8 }),
};

/** A client of an etcd that refuses some requests because it has too many. The real one refuses so beyond 5 000 unapplied. */
async function setUp(refuses: (path: string) => boolean) {
  const asked: string[] = [];
  const endpoints = await useAlteredMember((request) => {
    const path = request.replace(/^\w+ /, '');
    asked.push(path);
    return refuses(path) ? TOO_MANY : undefined;
  });
  const client = new EtcdClient({ api: 'v3', endpoints });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return { asked, locks: new LockManager(client, { ttl: 12 }), name: freshName() };
}

test.each(['/v3/lease/grant', '/v3/kv/txn'])('too many requests (code 8) at %s pass: acquire retries', async (busy) => {
  let left = 3;
  const { asked, locks, name } = await setUp((path) => path === busy && left-- > 0);
  expect(await locks.request(name, { timeout: 30 }, () => 'held')).toBe('held');
  expect(asked.filter((path) => path === busy).length).toBeGreaterThanOrEqual(4);
  await until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 0,
  );
});

test.each(['/v3/lease/keepalive', '/v3/kv/txn'])('a hold outlives too many requests at %s', async (busy) => {
  let left = 0;
  let refused = 0;
  const { locks, name } = await setUp((path) => {
    if (path !== busy || left === 0) return false;
    left -= 1;
    refused += 1;
    return true;
  });
  const held = await locks.acquire(name);
  left = 3;
  await until(
    () => refused,
    (count) => count === 3,
  );
  const before = held.expiresIn();
  await until(
    () => held.expiresIn(),
    (seconds) => seconds > before,
  );
  expect(await held.release()).toBe(true);
});

test('an entry that is left to expire leaves no lease for each of the tries', async () => {
  let left = 0;
  let refused = 0;
  const { asked, locks, name } = await setUp((path) => {
    if (path !== '/v3/kv/txn' || left === 0) return false;
    left -= 1;
    refused += 1;
    return true;
  });
  const tries = 2;
  await locks.request(name, { holdAtLeast: 10 }, () => {
    left = tries;
  });
  await until(
    () => refused,
    (count) => count === tries,
  );
  const [grants, revokes] = ['/v3/lease/grant', '/v3/kv/lease/revoke'].map(
    (path) => () => asked.filter((one) => one === path).length,
  ) as [() => number, () => number];
  // One for all entries, and one for each try to leave the entry to expire.
  await until(grants, (count) => count === 2 + tries);
  // The real etcd behind this one has carried out what it refuses, so the entry may end with one of them.
  await until(revokes, (count) => count >= tries);
});

test('a member that never has room for a request gets few of them', async () => {
  const { asked, locks, name } = await setUp((path) => path !== '/version');
  const begun = performance.now();
  const error = await rejection(locks.acquire(name, { timeout: 3 }));
  const seconds = (performance.now() - begun) / 1000;
  expect(error).toHaveProperty('message', expect.stringContaining('too many requests'));
  // Four in each second of an outage, and the first ones.
  expect(asked.length).toBeLessThanOrEqual(4 * Math.ceil(seconds) + 4);
  const quick = await rejection(locks.acquire(name));
  expect(quick).toBeInstanceOf(EtcdConnectionFailed);
});
