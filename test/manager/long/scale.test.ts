// Very many requests of one process for one lock. These tests count resources; bench/ measures times.
import { expect, inject, test } from 'vitest';
import { LockManager, type RequestOptions } from '../../../src/index.ts';
import { listenersOf } from '../../support/leaks.ts';
import { freshName, queueOn, useClient, useProxy } from '../../support/locks.ts';
import type { EtcdProxy, ProxiedRequest } from '../../support/proxy.ts';
import { runScript } from '../../support/script.ts';

const WAITERS = 3000;
/** Maximum heap in bytes of one waiting request with a timeout and a signal. */
const ROOM = 4096;
/** Maximum number of sockets: one for calls, one for reads. */
const SOCKETS = 2;

const HEAP = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { setFlagsFromString } from 'node:v8';
  import { runInNewContext } from 'node:vm';
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  async function heap() {
    for (let i = 0; i < 3; i += 1) {
      gc();
      await sleep(20);
    }
    return process.memoryUsage().heapUsed;
  }
`;

/** Makes all requests wait behind a hold of the same process, measures what they use, then releases the hold. */
const SCRIPT = `
  import { getEventListeners } from 'node:events';
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  ${HEAP}
  const listeners = (signal) => getEventListeners(signal, 'abort').length;

  // A slow answer on a busy machine must not cause a hedged request: that would need another socket.
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (callback, ms, ...args) => setTimeout(callback, Math.min(1000 * ms, 2 ** 31 - 1), ...args);
  const client = new EtcdClient({ endpoints: process.env.ETCD });
  const locks = new LockManager(client, { ttl: 3600 });
  const { signal } = new AbortController();
  const wait = (name, work) => locks.request(name, { signal, timeout: 3600 }, work);

  // Warm-up: objects that are created only once must not count.
  for (let i = 0; i < 100; i += 1) await wait(process.env.NAME, () => {});
  const held = await locks.acquire(process.env.NAME);
  const [served, all] = [[], new Array(${WAITERS})];
  const before = await heap();
  for (let i = 0; i < all.length; i += 1) all[i] = wait(process.env.NAME, () => { served.push(i); });
  const room = ((await heap()) - before) / all.length;
  const waiting = { signal: listeners(signal), closing: client.store.pending.closing.listenerCount };
  await held.release();
  await Promise.all(all);
  const after = { signal: listeners(signal), closing: client.store.pending.closing.listenerCount };
  await client.close();
  const inOrder = served.length === all.length && served.every((which, i) => which === i);
  console.log(JSON.stringify({ room, waiting, after, inOrder }));
`;

const ENTRIES = 1000;
/** Maximum heap in bytes of one wait behind so many entries. A listing of them takes 200 000. */
const ROOM_IN_QUEUE = 65_536;

/** Makes 40 locks wait at the end of a long queue, and measures the heap that each of them uses. */
const IN_LONG_QUEUE = `
  import { Lock } from 'etcd-v2-lock';
  import { V2Client } from './dist/v2/client.js';
  ${HEAP}
  const client = new V2Client({ endpoints: process.env.ETCD });
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

  // Warm-up: objects that are created only once must not count.
  await new Lock(client, process.env.NAME + '/short').acquire({ lockTtl: 3600 });
  await wait(process.env.NAME + '/short', 10);
  for (let i = 0; i < ${ENTRIES}; i += 1) await client.createInOrder(queue, 'some', { ttl: 3600 });
  const before = await heap();
  await wait(process.env.NAME, 40);
  // A wait reads the queue again after 20 s, and then needs the whole queue for a moment.
  let room = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 20 && room > ${ROOM_IN_QUEUE}; i += 1) {
    room = Math.min(room, ((await heap()) - before) / 40);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  abort.abort(new Error('enough'));
  await Promise.all(waits);
  await client.delete(queue, { recursive: true, dir: true });
  await client.close();
  console.log(room);
`;

const isAppend = ({ method }: ProxiedRequest): boolean => method === 'POST';
const isRemoval = ({ method }: ProxiedRequest): boolean => method === 'DELETE';

/** Tracks the highest numbers of keys and sockets that the process behind the proxy has at a time. */
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

test(`${WAITERS} waiting requests share one key and ${SOCKETS} sockets, take ${ROOM} bytes each and run in order`, async () => {
  const [proxy, name] = [await useProxy(), freshName()];
  const seen = most(proxy);
  const { code, stdout, stderr } = await runScript(SCRIPT, { ETCD: proxy.url, NAME: name });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const { room, ...rest } = JSON.parse(stdout);
  expect(rest).toEqual({
    // Each waiting request and the hold listen for the close of the client.
    waiting: { signal: 1, closing: WAITERS + 1 },
    after: { signal: 0, closing: 0 },
    inOrder: true,
  });
  expect(room).toBeGreaterThan(0);
  expect(room).toBeLessThanOrEqual(ROOM);
  expect(seen.keys).toBe(1);
  expect(seen.sockets).toBeLessThanOrEqual(SOCKETS);
  expect(await queueOn(name)).toEqual([]);
}, 900_000);

test(`a wait behind ${ENTRIES} entries takes at most ${ROOM_IN_QUEUE} bytes: it keeps no copy of the queue`, async () => {
  const { code, stdout, stderr } = await runScript(IN_LONG_QUEUE, { ETCD: inject('etcd'), NAME: freshName() });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(Number(stdout)).toBeGreaterThan(0);
  expect(Number(stdout)).toBeLessThanOrEqual(ROOM_IN_QUEUE);
});

/** Starts `WAITERS` requests behind a hold. `reasons` resolves to the errors that they reject with. */
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

/** Expects that only the holder has a key and a listener, and that the next request gets the lock. */
async function expectNothingLeft({ client, name, locks, held }: Waiting): Promise<void> {
  expect(await queueOn(name)).toMatchObject([{ key: held.key }]);
  expect(listenersOf(client.store.pending.closing)).toBe(1);
  expect(await held.release()).toBe(true);
  expect(await locks.request(name, () => 'served')).toBe('served');
}

test(`${WAITERS} waiting requests reject with the reason of the signal that they share`, async () => {
  const abort = new AbortController();
  const { signal } = abort;
  const waiting = await waitInVain({ signal });
  expect(listenersOf(signal)).toBe(1);
  const reason = new Error('by all');
  abort.abort(reason);
  expect(new Set(await waiting.reasons)).toEqual(new Set([reason]));
  expect(listenersOf(signal)).toBe(0);
  await expectNothingLeft(waiting);
});

test(`${WAITERS} waiting requests name the holder when they time out`, async () => {
  const waiting = await waitInVain({ timeout: 1 });
  const reasons = await waiting.reasons;
  expect(new Set(reasons.map(({ code }) => code))).toEqual(new Set(['ETCD_WATCH_TIMED_OUT']));
  expect(new Set(reasons.map(({ holder }) => holder.key))).toEqual(new Set([waiting.held.key]));
  await expectNothingLeft(waiting);
});

test(`${WAITERS} waiting requests reject when their client is closed`, async () => {
  const { client, name, held, reasons } = await waitInVain({});
  const closed = client.close();
  expect(new Set((await reasons).map(({ code }) => code))).toEqual(new Set(['ETCD_CLIENT_CLOSED']));
  await held.release();
  await closed;
  expect(listenersOf(client.store.pending.closing)).toBe(0);
  expect(await queueOn(name)).toEqual([]);
});
