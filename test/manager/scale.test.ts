// Very many requests of one process for one lock. Counts only: how long it takes is for bench/.
import { expect, inject, test } from 'vitest';
import { LockManager, type RequestOptions } from '../../src/index.ts';
import { listenersOf } from '../support/leaks.ts';
import { freshName, queueOn, useClient, useProxy } from '../support/locks.ts';
import type { EtcdProxy, ProxiedRequest } from '../support/proxy.ts';
import { runScript } from '../support/script.ts';

const WAITERS = 10_000;
/** Bytes of heap that one of them may take, with a timeout and a signal. */
const ROOM = 4096;
/** One for calls, one for reads. */
const SOCKETS = 2;

const HEAP = `
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  async function heap() {
    for (let i = 0; i < 3; i += 1) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return process.memoryUsage().heapUsed;
  }
`;

/** Lets them all wait behind a hold of the same process, looks at what they take, and lets them go. */
const SCRIPT = `
  import { getEventListeners } from 'node:events';
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  ${HEAP}
  const listeners = (signal) => getEventListeners(signal, 'abort').length;

  const client = new EtcdClient({ endpoints: process.env.ETCD });
  const locks = new LockManager(client, { ttl: 60 });
  const { signal } = new AbortController();
  const wait = (name, work) => locks.request(name, { signal, timeout: 3600 }, work);

  // What is made only once is there before.
  for (let i = 0; i < 100; i += 1) await wait(process.env.NAME, () => {});
  const held = await locks.acquire(process.env.NAME);
  const [served, all] = [[], new Array(${WAITERS})];
  const before = await heap();
  for (let i = 0; i < all.length; i += 1) all[i] = wait(process.env.NAME, () => { served.push(i); });
  const room = ((await heap()) - before) / all.length;
  const waiting = { signal: listeners(signal), closing: client.cleanups.closing.listenerCount };
  await held.release();
  await Promise.all(all);
  const after = { signal: listeners(signal), closing: client.cleanups.closing.listenerCount };
  await client.close();
  const inOrder = served.length === all.length && served.every((which, i) => which === i);
  console.log(JSON.stringify({ room, waiting, after, inOrder }));
`;

const ENTRIES = 1000;
/** Bytes of heap that a wait behind so many entries may take; what is told of all of them takes 200 000. */
const ROOM_IN_QUEUE = 65_536;

/** Lets some wait at the end of a long queue, and looks at what each of them takes. */
const IN_LONG_QUEUE = `
  import { EtcdClient, Lock } from 'etcd-v2-lock';
  ${HEAP}
  const client = new EtcdClient({ endpoints: process.env.ETCD });
  const queue = '/_locks/' + process.env.NAME;
  const abort = new AbortController();
  const { signal } = abort;
  let polls = 0;
  const watch = client.watch;
  client.watch = (...args) => {
    polls += 1;
    return watch.apply(client, args);
  };
  const waits = [];
  async function wait(name, count) {
    const enough = polls + count;
    for (let i = 0; i < count; i += 1) waits.push(new Lock(client, name).acquire({ timeout: 3600, lockTtl: 3600, signal }).catch(() => {}));
    while (polls < enough) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  // What is made only once is there before.
  await new Lock(client, process.env.NAME + '/short').acquire({ lockTtl: 3600 });
  await wait(process.env.NAME + '/short', 10);
  for (let i = 0; i < ${ENTRIES}; i += 1) await client.createInOrder(queue, 'some', { ttl: 3600 });
  const before = await heap();
  await wait(process.env.NAME, 40);
  const room = ((await heap()) - before) / 40;
  abort.abort(new Error('enough'));
  await Promise.all(waits);
  await client.delete(queue, { recursive: true, dir: true });
  await client.close();
  console.log(room);
`;

const isAppend = ({ method }: ProxiedRequest): boolean => method === 'POST';
const isRemoval = ({ method }: ProxiedRequest): boolean => method === 'DELETE';

/** The most keys and sockets that the process behind the proxy had at a time. */
function most(proxy: EtcdProxy): { keys: number; sockets: number } {
  const seen = { keys: 0, sockets: 0 };
  let appended = 0;
  let removing: ProxiedRequest[] = [];
  proxy.intercept((request) => {
    if (isRemoval(request)) removing.push(request);
    if (isAppend(request)) {
      const left = removing.filter(({ status }) => status !== 200);
      appended += 1 - (removing.length - left.length);
      removing = left;
    }
    seen.keys = Math.max(seen.keys, appended);
    seen.sockets = Math.max(seen.sockets, proxy.openSockets);
    return undefined;
  });
  return seen;
}

test(`${WAITERS} that wait in one process are one key, ${SOCKETS} sockets and ${ROOM} bytes each, and have their turns in order`, async () => {
  const [proxy, name] = [await useProxy(), freshName()];
  const seen = most(proxy);
  const { code, stdout, stderr } = await runScript(SCRIPT, { ETCD: proxy.url, NAME: name });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { room, ...told } = JSON.parse(stdout);
  expect(told).toEqual({
    // Of the client each of them is told, and the one hold.
    waiting: { signal: 1, closing: WAITERS + 1 },
    after: { signal: 0, closing: 0 },
    inOrder: true,
  });
  expect(room).toBeGreaterThan(0);
  expect(room).toBeLessThanOrEqual(ROOM);
  expect(seen.keys).toBe(1);
  expect(seen.sockets).toBeLessThanOrEqual(SOCKETS);
  expect(await queueOn(name)).toEqual([]);
}, 300_000);

test(`a wait at the end of ${ENTRIES} entries takes no more than ${ROOM_IN_QUEUE} bytes: it keeps nothing of the queue`, async () => {
  const { code, stdout, stderr } = await runScript(IN_LONG_QUEUE, { ETCD: inject('etcd'), NAME: freshName() });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(Number(stdout)).toBeGreaterThan(0);
  expect(Number(stdout)).toBeLessThanOrEqual(ROOM_IN_QUEUE);
}, 60_000);

/** So many requests behind a hold, and what they were rejected with in the end. */
async function waitInVain(options: RequestOptions) {
  const [client, name] = [useClient(), freshName()];
  const locks = new LockManager(client, { ttl: 60 });
  const held = await locks.acquire(name);
  const inVain = Array.from({ length: WAITERS }, () => locks.request(name, options, () => 'ran'));
  const reasons = Promise.allSettled(inVain).then((all) =>
    all.map((one) => (one.status === 'rejected' ? one.reason : expect.unreachable())),
  );
  return { client, name, locks, held, reasons };
}

type Waiting = Awaited<ReturnType<typeof waitInVain>>;

/** No key but the holder's, and nobody listens but for its hold; the next one is served. */
async function expectNothingLeft({ client, name, locks, held }: Waiting): Promise<void> {
  expect(await queueOn(name)).toMatchObject([{ key: held.key }]);
  expect(listenersOf(client.cleanups.closing)).toBe(1);
  expect(await held.release()).toBe(true);
  expect(await locks.request(name, () => 'served')).toBe('served');
}

test('all of them end with the reason of the signal that they share', async () => {
  const abort = new AbortController();
  const { signal } = abort;
  const waiting = await waitInVain({ signal });
  expect(listenersOf(signal)).toBe(1);
  const reason = new Error('by all');
  abort.abort(reason);
  expect(new Set(await waiting.reasons)).toEqual(new Set([reason]));
  expect(listenersOf(signal)).toBe(0);
  await expectNothingLeft(waiting);
}, 60_000);

test('all of them name the holder when they are out of time', async () => {
  const waiting = await waitInVain({ timeout: 1 });
  const reasons = await waiting.reasons;
  expect(new Set(reasons.map(({ code }) => code))).toEqual(new Set(['ETCD_WATCH_TIMED_OUT']));
  expect(new Set(reasons.map(({ holder }) => holder.key))).toEqual(new Set([waiting.held.key]));
  await expectNothingLeft(waiting);
}, 60_000);

test('all of them end when their client is closed', async () => {
  const { client, name, held, reasons } = await waitInVain({});
  const closed = client.close();
  expect(new Set((await reasons).map(({ code }) => code))).toEqual(new Set(['ETCD_CLIENT_CLOSED']));
  await held.release();
  await closed;
  expect(listenersOf(client.cleanups.closing)).toBe(0);
  expect(await queueOn(name)).toEqual([]);
}, 60_000);
