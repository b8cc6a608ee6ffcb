// Basic authentication of etcd v2, passed on to etcd v3.
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { startPython } from '../../../../compat/python.ts';
import { ignore } from '../../../../src/base/cancellation.ts';
import { EtcdClient } from '../../../../src/client.ts';
import { EtcdInsufficientPermissions } from '../../../../src/errors.ts';
import { LockManager } from '../../../../src/manager/manager.ts';
import { Bridge } from '../../../../src/server/bridge/bridge.ts';
import { type EtcdMember, startEtcd } from '../../../support/etcd.ts';
import { gate } from '../../../support/gate.ts';
import { freshName, rejection, useProxy } from '../../../support/locks.ts';
import { RawConnection, request } from '../../../support/raw-connection.ts';
import { APP, basic } from '../../../support/secured-etcd.ts';
import { type GuardedV3, guardV3 } from '../../../support/secured-v3.ts';
import { now } from '../../../support/stalls/stalls.mjs';
import { until } from '../../../support/until.ts';

let etcd: EtcdMember;
let guarded: GuardedV3;

beforeAll(async () => {
  etcd = await startEtcd();
  guarded = await guardV3(etcd.url);
});
afterAll(() => etcd.stop());

/** A bridge to the guarded etcd, and the requests that it sends there. */
async function setUp(own: { username?: string; password?: string } = {}) {
  const proxy = await useProxy(etcd.url);
  const bridge = await Bridge.start({ endpoints: proxy.url, ...own });
  onTestFinished(() => bridge.stop());
  const ask = (path: string, credentials?: typeof APP, init: RequestInit = {}) =>
    fetch(bridge.url + path, { ...init, ...(credentials && { headers: { authorization: basic(credentials) } }) });
  return {
    bridge,
    ask,
    proxy,
    logIns: () => proxy.requests.filter(({ path }) => path === '/v3/auth/authenticate').length,
  };
}

test('python-etcd locks as its own user, who logs in once', async () => {
  const { bridge, logIns } = await setUp();
  const python = await startPython(bridge.url, { username: APP.username, password: APP.password });
  onTestFinished(() => python.stop());
  const name = freshName();
  const lock = await python.lock(name);
  expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
  expect(await guarded.keysBelow(`/_locks/${name}/`)).toEqual([`/_locks/${name}/${(await lock.state()).uuid}`]);
  await lock.release();
  expect(await guarded.keysBelow(`/_locks/${name}/`)).toEqual([]);
  expect(logIns()).toBe(1);
});

test('each answer names the cluster, though the bridge itself has no user', async () => {
  const { ask } = await setUp();
  const answers = await Promise.all([ask('/v2/keys/_locks/x', APP), ask('/v2/keys/_locks/y', APP)]);
  const names = answers.map(({ headers }) => headers.get('x-etcd-cluster-id'));
  expect(names).toEqual([expect.stringMatching(/^[0-9a-f]+$/), names[0]]);
});

test('a request without a user has the rights of the bridge’s own, or none', async () => {
  const without = await setUp();
  const refused = await without.ask('/v2/keys/_locks/x');
  expect([refused.status, await refused.json()]).toEqual([401, expect.objectContaining({ errorCode: 110 })]);
  const withOwn = await setUp(APP);
  expect((await withOwn.ask('/v2/keys/_locks/x')).status).toBe(200);
});

test('a wrong password is refused as etcd v2 does, without being shown, and gets no rights of another request', async () => {
  const { bridge, ask } = await setUp(APP);
  expect((await ask('/v2/keys/_locks/x', APP)).status).toBe(200);
  const wrong = { username: APP.username, password: 'not-this-one' };
  const answer = await ask('/v2/keys/_locks/x', wrong);
  const body = await answer.text();
  expect([answer.status, body]).toEqual([401, expect.stringContaining('"errorCode":110')]);
  expect(body).not.toContain(wrong.password);
  const client = new EtcdClient({ endpoints: bridge.url, ...wrong });
  // On a slow machine an append may get no answer in time. Nobody may then look for it with this password.
  onTestFinished(() => client.close({ timeout: 0 }).catch(ignore));
  expect(await rejection(new LockManager(client).acquire('x'))).toBeInstanceOf(EtcdInsufficientPermissions);
});

test('a key that the user may not use is refused', async () => {
  const elsewhere = await Bridge.start({ endpoints: etcd.url, lockPrefix: '/elsewhere' });
  onTestFinished(() => elsewhere.stop());
  const answer = await fetch(`${elsewhere.url}/v2/keys/elsewhere/x`, { headers: { authorization: basic(APP) } });
  expect([answer.status, await answer.json()]).toEqual([401, expect.objectContaining({ errorCode: 110 })]);
});

test.each(['Basic ???', 'Basic bm8gY29sb24=', 'Bearer abc'])(
  'a header that names no user is ignored, as by etcd: %j',
  async (authorization) => {
    const { bridge } = await setUp(APP);
    const { status } = await fetch(`${bridge.url}/v2/keys/_locks/x`, { headers: { authorization } });
    expect(status).toBe(200);
  },
);

const LOG_IN = '/v3/auth/authenticate';
/** A user whom etcd does not know. */
const stranger = (number: number) => ({ username: `stranger-${number}`, password: 'wrong' });

/** Adds a user who may use the locks, as `APP` may. */
async function addUser(): Promise<typeof APP> {
  const user = { username: freshName(), password: 'secret' };
  await guarded.asRoot('/auth/user/add', { name: user.username, password: user.password });
  await guarded.asRoot('/auth/user/grant', { user: user.username, role: 'locks' });
  return user;
}

test('130 wrong logins at once take nothing from a user who is logged in, and the next one waits for its turn', async () => {
  const { ask, proxy } = await setUp();
  const next = await addUser();
  expect((await ask('/v2/keys/_locks/x', APP)).status).toBe(200);
  const over = gate();
  proxy.intercept(({ path }) => (path === LOG_IN ? { hold: over.opened } : undefined));
  const wrong = Array.from({ length: 130 }, (_, i) => ask('/v2/keys/_locks/x', stranger(i)));
  await until(
    () => proxy.open.size,
    (open) => open === 4,
  );
  const answers = await Promise.all(Array.from({ length: 24 }, () => ask('/v2/keys/_locks/x', APP)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  const nextAnswer = ask('/v2/keys/_locks/x', next);
  over.open();
  expect((await nextAnswer).status).toBe(200);
  // On a slow machine, some have waited for too long.
  for (const { status } of await Promise.all(wrong)) expect([401, 503]).toContain(status);
  await until(
    () => proxy.openSockets,
    (sockets) => sockets < 40,
  );
});

test('130 users in turn leave no more than 100 connected, and the next one is served', async () => {
  const proxy = await useProxy(inject('etcd'));
  const bridge = await Bridge.start({ endpoints: proxy.url });
  onTestFinished(() => bridge.stop());
  const ask = (number: number) =>
    fetch(`${bridge.url}/v2/keys/_locks/x`, { headers: { authorization: basic(stranger(number)) } });
  // Authentication is not enabled there, so that each of them may log in.
  for (let i = 0; i < 130; i += 1) expect((await ask(i)).status).toBe(200);
  await until(
    () => proxy.openSockets,
    (sockets) => sockets <= 100,
  );
  expect((await ask(0)).status).toBe(200);
});

test('a refused login is not repeated for some seconds, by however many requests', async () => {
  const { ask, logIns } = await setUp();
  const wrong = { username: APP.username, password: 'wrong' };
  const answers = [
    ...(await Promise.all(Array.from({ length: 20 }, () => ask('/v2/keys/_locks/x', wrong)))),
    await ask('/v2/keys/_locks/x', wrong),
  ];
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 401));
  expect(logIns()).toBe(1);
});

test('a poll of a user ends when the password has been changed, and the user has to log in again', async () => {
  const { ask, proxy, logIns } = await setUp();
  const user = await addUser();
  const lock = `/v2/keys/_locks/${freshName()}`;
  const body = new URLSearchParams({ value: 'x', ttl: '60' });
  const appended = await ask(lock, user, { method: 'POST', body });
  const { node } = (await appended.json()) as { node: { key: string } };
  // Each read of the poll is then followed by the next one.
  proxy.intercept(({ path }) => (path === '/v3/watch' ? { refuse: true } : undefined));
  const answer = await ask(`/v2/keys${node.key}?wait=true`, user);
  expect(answer.status).toBe(200);
  await guarded.asRoot('/auth/user/changepw', { name: user.username, password: 'another' });
  await expect(answer.text()).rejects.toThrow();
  const before = logIns();
  for (let i = 0; i < 5; i += 1) expect((await ask(lock, user)).status).toBe(401);
  expect(logIns() - before).toBeLessThanOrEqual(1);
  expect((await ask(lock, { ...user, password: 'another' })).status).toBe(200);
});

test('a user who may read the entries below the prefix may list and poll them', async () => {
  const { ask } = await setUp();
  const { status, headers } = await ask('/v2/keys/_locks?recursive=true', APP);
  expect(status).toBe(200);
  const next = Number(headers.get('x-etcd-index')) + 1;
  for (const since of ['', `&waitIndex=${next - 1}`, `&waitIndex=${next}`]) {
    const poll = await ask(`/v2/keys/_locks?wait=true&recursive=true${since}`, APP);
    expect([since, poll.status]).toEqual([since, 200]);
    await poll.body?.cancel();
  }
});

test('more logins than can wait are refused, a poll after a second: python-etcd asks again at once', async () => {
  const { bridge, ask, proxy } = await setUp();
  proxy.intercept(() => ({ silent: true }));
  // Four are in progress, and 200 wait.
  const connections = await Promise.all(Array.from({ length: 204 }, () => RawConnection.open(bridge.url)));
  for (const [i, connection] of connections.entries()) {
    const headers = `Authorization: ${basic(stranger(i))}\r\n`;
    connection.send(request('GET', '/v2/keys/_locks/x', { headers }));
  }
  let more = 1000;
  const isRefused = async (): Promise<boolean> => {
    more += 1;
    const signal = AbortSignal.timeout(500);
    return (await ask('/v2/keys/_locks/x', stranger(more), { signal }).catch(() => undefined))?.status === 503;
  };
  await until(isRefused, (refused) => refused);
  const asked = now();
  expect((await ask('/v2/keys/_locks/x?wait=true', stranger(999))).status).toBe(503);
  expect(now() - asked).toBeGreaterThan(990);
});

test('health needs no rights', async () => {
  const { ask } = await setUp();
  const answer = await ask('/health');
  expect([answer.status, await answer.text()]).toEqual([200, '{"health":"true"}']);
});
