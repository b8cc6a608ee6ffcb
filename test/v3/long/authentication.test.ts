import debugOf from 'debug';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { EtcdClient, type EtcdClientOptions } from '../../../src/client.ts';
import { EtcdInsufficientPermissions, EtcdLockLost } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { aborted } from '../../suites/lock/locks.ts';
import { type EtcdMember, startEtcd } from '../../support/etcd.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { APP } from '../../support/secured-etcd.ts';
import { type GuardedV3, guardV3 } from '../../support/secured-v3.ts';
import { useStillClock } from '../../support/still-clock.ts';
import { httpAnswer, startTcpServer } from '../../support/tcp-server.ts';
import { until } from '../../support/until.ts';
import { waysOfAsking } from '../../support/ways-of-asking.ts';

let etcd: EtcdMember;
let guarded: GuardedV3;

beforeAll(async () => {
  etcd = await startEtcd({ args: ['--auth-token-ttl=2'] });
  guarded = await guardV3(etcd.url);
});
afterAll(() => etcd.stop());

function connect(options: EtcdClientOptions): EtcdClient {
  const client = new EtcdClient({ api: 'v3', randomizeEndpoints: false, ...options });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return client;
}

/** A client with the right password, behind a proxy. */
async function setUp(options: EtcdClientOptions = {}) {
  const proxy = await useProxy(etcd.url);
  const client = connect({ endpoints: proxy.url, ...APP, ...options });
  const count = (match: (request: ProxiedRequest) => boolean): number => proxy.requests.filter(match).length;
  return {
    proxy,
    client,
    locks: new LockManager(client, { ttl: 9 }),
    name: freshName(),
    logIns: () => count(({ path }) => path === '/v3/auth/authenticate'),
    versions: () => count(({ path }) => path === '/version'),
    refused: () => count(({ status }) => status === 401),
    watches: () => count(({ path }) => path === '/v3/watch'),
  };
}

const untilQueued = (name: string, length: number) =>
  until(
    () => guarded.keysBelow(`/_locks/${name}/`),
    (keys) => keys.length === length,
  );

describe('with the right password', () => {
  test('a storm of calls at the start asks a member for its version and for a token once', async () => {
    const { locks, name, logIns, versions } = await setUp();
    const names = Array.from({ length: 40 }, (_, i) => `${name}-${i}`);
    const holds = await Promise.all(names.map((one) => locks.acquire(one)));
    expect([logIns(), versions()]).toEqual([1, 1]);
    await Promise.all(holds.map((held) => held.release()));
  });

  test('each member of a client is asked for a token of its own', async () => {
    const [first, second] = [await useProxy(etcd.url), await useProxy(etcd.url)];
    const locks = new LockManager(connect({ endpoints: [first.url, second.url], ...APP }), { ttl: 9 });
    await locks.request(freshName(), () => undefined);
    await first.stop();
    await locks.request(freshName(), () => undefined);
    for (const proxy of [first, second])
      expect(proxy.requests.filter(({ path }) => path === '/v3/auth/authenticate')).toHaveLength(1);
  });

  test('a hold outlives its tokens: each renewal gets a new one', async () => {
    const { locks, name, logIns, refused } = await setUp();
    const held = await locks.acquire(name);
    // Renewed each 3 seconds, with tokens that live for 2.
    await until(refused, (count) => count >= 2);
    await until(logIns, (count) => count >= 3);
    held.assertHeld();
    expect(logIns()).toBeLessThanOrEqual(refused() + 1);
    expect(await held.release()).toBe(true);
    expect(await guarded.keysBelow(`/_locks/${name}/`)).toEqual([]);
  });

  test('a waiter outlives its tokens, and gets the lock', async () => {
    const { locks, name } = await setUp();
    const waiting = await setUp();
    const owner = await locks.acquire(name);
    // With a shorter TTL, the waiter uses its token so often that it stays valid.
    const acquired = waiting.locks.acquire(name, { ttl: 30 });
    await untilQueued(name, 2);
    await until(waiting.refused, (count) => count >= 1);
    await owner.release();
    const held = await acquired;
    expect(held.fencingToken).toBeGreaterThan(owner.fencingToken);
    expect(await held.release()).toBe(true);
  });

  test('a watch that is refused for its old token is begun again with a new one', async () => {
    const { locks, name } = await setUp();
    const waiting = await setUp();
    const owner = await locks.acquire(name);
    let watches = 0;
    // Not the read before the watch, but the watch itself, finds the token too old.
    waiting.proxy.intercept(({ path }) => {
      if (path !== '/v3/watch') return undefined;
      watches += 1;
      return watches === 1 ? { hold: guarded.changePassword(APP.password) } : undefined;
    });
    const acquired = waiting.locks.acquire(name, { ttl: 30 });
    await until(waiting.logIns, (count) => count === 2);
    await until(waiting.watches, (count) => count === 2);
    await owner.release();
    expect(await (await acquired).release()).toBe(true);
  });
});

describe.each([
  ['a wrong password', { ...APP, password: 'guessed-S3cret' }, 'authentication failed, invalid user ID or password'],
  ['an unknown user', { username: 'nobody', password: 'guessed-S3cret' }, 'authentication failed'],
  ['no password', { username: undefined, password: undefined }, 'user name is empty'],
])('with %s', (_, credentials, why) => {
  test('every kind of acquire rejects at once with one clear error, and the password is in no message', async () => {
    debugOf.enable('etcd-v2-lock:*');
    const written = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
    onTestFinished(() => {
      debugOf.disable();
      written.mockRestore();
    });
    // The check of a password may take seconds on a busy machine.
    useStillClock();
    for (const [way, ask] of waysOfAsking) {
      const { username, password } = credentials;
      const { client, proxy, name, logIns } = await setUp(credentials as EtcdClientOptions);
      const error = await rejection(ask(client, name));
      expect(error, way).toBeInstanceOf(EtcdInsufficientPermissions);
      expect((error as Error).name).toBe('EtcdInsufficientPermissions');
      const who = username === undefined ? '(no user name sent)' : `as user "${username}"`;
      expect(error, way).toHaveProperty('message', expect.stringContaining(who));
      expect(error, way).toHaveProperty('message', expect.stringContaining(`${proxy.url}: no access`));
      expect(error, way).toHaveProperty('message', expect.stringContaining(why));
      expect(JSON.stringify(error) + String((error as Error).stack)).not.toContain('guessed-S3cret');
      expect(logIns(), way).toBe(password === undefined ? 0 : 1);
      await client.close({ timeout: 0 });
    }
    const log = written.mock.calls.map(([text]) => String(text)).join('');
    expect(log).toContain('etcd-v2-lock:client');
    expect(log).not.toContain('guessed-S3cret');
  });
});

test('a server that sends back what it got does not bring the password into the error', async () => {
  const server = await startTcpServer((socket, request) => {
    const body = request.slice(request.indexOf('\r\n\r\n') + 4);
    socket.write(httpAnswer(200, {}, request.startsWith('GET /version') ? '{"etcdserver":"3.4.23"}' : body));
  });
  onTestFinished(() => server.stop());
  const client = connect({ endpoints: server.url, username: 'app', password: 'S3cret' });
  const error = await rejection(new LockManager(client).acquire('x', { timeout: 5 }));
  expect(error).toHaveProperty('message', expect.stringContaining("the login is not from etcd's v3 gateway"));
  expect(String(error)).not.toContain('S3cret');
});

test('a role without permission on the prefix gets an error with code 7 that names the key and the user', async () => {
  const { client, name } = await setUp({ lockPrefix: '/elsewhere' });
  const error = await rejection(new LockManager(client).acquire(name, { timeout: 5 }));
  expect(error).toBeInstanceOf(EtcdInsufficientPermissions);
  expect(error).toMatchObject({ errorCode: 7, httpStatus: 403 });
  expect(String(error)).toMatch(new RegExp(`no access to /elsewhere/${name}/\\w+ as user "app": .*permission denied`));
});

describe('when the password is changed on the server', () => {
  test('a hold is lost at its next renewal, and its key is removed once the password is valid again', async () => {
    const { locks, name, logIns, watches } = await setUp();
    onTestFinished(() => guarded.changePassword(APP.password));
    // No renewal is due before the password has changed.
    const held = await locks.acquire(name, { ttl: 30 });
    // The watch of the held entry needs its token only to begin.
    await until(watches, (count) => count === 1);
    await guarded.changePassword('changed');
    const before = logIns();
    const loss = await aborted(held.signal);
    expect(loss).toBeInstanceOf(EtcdLockLost);
    expect(loss).toHaveProperty('cause', expect.any(EtcdInsufficientPermissions));
    expect(String(loss)).toContain('invalid user ID or password');
    expect(logIns()).toBe(before + 1);
    expect(await held.release()).toBe(false);
    await guarded.changePassword(APP.password);
    await untilQueued(name, 0);
  });

  test('a waiter rejects with the refusal', async () => {
    const { locks, name } = await setUp();
    const waiting = await setUp();
    onTestFinished(() => guarded.changePassword(APP.password));
    const owner = await locks.acquire(name);
    const refused = rejection(waiting.locks.acquire(name));
    await untilQueued(name, 2);
    await guarded.changePassword('changed');
    expect(await refused).toBeInstanceOf(EtcdInsufficientPermissions);
    await guarded.changePassword(APP.password);
    await owner.release();
    await untilQueued(name, 0);
  });
});

test('a user and a password do no harm at a server without authentication', async () => {
  const client = connect({ endpoints: inject('etcd'), ...APP });
  expect(await new LockManager(client).request(freshName(), () => 'held')).toBe('held');
});
