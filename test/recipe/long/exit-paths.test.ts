import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type AcquireOptions, EtcdClient, EtcdLockTimeout, Lock, type LockOptions } from '../../../src/index.ts';
import { useBeatClock } from '../../support/beat-clock.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { listenersOf, trackTimers } from '../../support/leaks.ts';
import { freshName, queueOn, raw, rejection, untilQueued, useClient, useProxy } from '../../support/locks.ts';
import type { Action, EtcdProxy, ProxiedRequest } from '../../support/proxy.ts';
import { elapsed, moment } from '../../support/stalls/stalls.mjs';
import { until } from '../../support/until.ts';

/** A code path through `acquire`, and the requests it makes until it waits for the lock or holds it. */
interface Path {
  readonly title: string;
  readonly requests: readonly string[];
  readonly lock?: LockOptions;
  readonly options?: AcquireOptions;
  /** Whether another client holds the lock during the whole test. */
  readonly taken: boolean;
  /** Runs on the lock before the call under test. */
  readonly before?: (lock: Lock) => Promise<unknown>;
  /** What the proxy does with the first append of the call. */
  readonly firstAppend?: Action;
}

/** Seconds. */
const TIMEOUT = 0.8;
/** A call ends at most this many seconds after its timeout: 0.3 for the removal of its key, and 0.5 for a busy machine. */
const LATE = 0.8;

const APPEND = 'POST queue';
const LIST = 'GET queue';
const QUORUM_READ = 'GET queue by quorum';
const POLL = 'GET key as a long poll';
const RENEW = 'PUT key';
const VERSION = 'GET version';

const paths: readonly Path[] = [
  { title: 'a free lock', taken: false, requests: [APPEND, LIST] },
  { title: 'a taken lock', taken: true, requests: [APPEND, LIST, POLL] },
  { title: 'a taken lock with keepAlive', taken: true, options: { keepAlive: true }, requests: [APPEND, LIST, POLL] },
  {
    title: 'a lock with a chosen uuid',
    taken: true,
    lock: { uuid: 'node-1' },
    requests: [QUORUM_READ, APPEND, LIST, POLL],
  },
  {
    title: 'a lock whose entry a non-blocking call left in the queue',
    taken: true,
    before: (lock) => lock.acquire({ blocking: false, lockTtl: 60 }),
    requests: [VERSION, RENEW, LIST, POLL],
  },
  {
    title: 'a lock that is already held',
    taken: false,
    before: (lock) => lock.acquire({ lockTtl: 60 }),
    requests: [VERSION, RENEW, LIST],
  },
  {
    title: 'a lock whose first append gets no answer',
    taken: true,
    firstAppend: { swallow: true },
    requests: [APPEND, QUORUM_READ, VERSION, RENEW, LIST, POLL],
  },
];

function kind({ method, path, query }: ProxiedRequest): string {
  if (path === '/version') return VERSION;
  const what = /\/\d{20}$/.test(path) ? 'key' : 'queue';
  if (query.get('wait') === 'true') return `${method} ${what} as a long poll`;
  return `${method} ${what}${query.get('quorum') === 'true' ? ' by quorum' : ''}`;
}

useBeatClock();
let timers: ReturnType<typeof trackTimers>;
beforeEach(() => {
  timers = trackTimers();
});
afterEach(() => timers.stop());

interface Started {
  readonly name: string;
  readonly proxy: EtcdProxy;
  readonly client: EtcdClient;
  readonly lock: Lock;
  /** Opening it lets the request under test continue. */
  readonly stuck: Gate;
  /** Resolves when that request has arrived. */
  readonly arrived: Promise<unknown>;
}

/** Prepares everything but the call itself. The proxy will hold back the n-th request of the call. */
async function start(path: Path, n: number): Promise<Started> {
  const name = freshName();
  const proxy = await useProxy();
  const client = new EtcdClient({ endpoints: proxy.url });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  if (path.taken) await raw('POST', `/_locks/${name}`, { value: 'owner' });
  const lock = new Lock(client, name, path.lock);
  await path.before?.(lock);
  const stuck = gate();
  let seen = 0;
  const arrived = new Promise<void>((resolve) => {
    proxy.intercept(() => {
      seen += 1;
      if (seen === n) {
        resolve();
        return { hold: stuck.opened };
      }
      return seen === 1 ? path.firstAppend : undefined;
    });
  });
  return { name, proxy, client, lock, stuck, arrived };
}

/** Expects no key and no listener to be left, and no timer and no socket once the client is closed. */
async function expectNothingLeft(path: Path, { name, proxy, client, stuck }: Started, signal?: AbortSignal) {
  if (signal) expect(listenersOf(signal)).toBe(0);
  stuck.open();
  const queue = await untilQueued(name, path.taken ? 1 : 0);
  expect(queue.map(({ value }) => value)).toEqual(path.taken ? ['owner'] : []);
  await client.close();
  expect(listenersOf(client.store.pending.closing)).toBe(0);
  await until(
    () => ({ timers: timers.live, sockets: proxy.openSockets }),
    (left) => left.timers === 0 && left.sockets === 0,
  );
  expect(await queueOn(name)).toHaveLength(queue.length);
}

describe.each(paths)('acquire of $title', (path) => {
  test('makes the requests at which the tests below interrupt it', async () => {
    const { proxy, lock, client, stuck } = await start(path, 0);
    const before = proxy.requests.length;
    const abort = new AbortController();
    const call = lock.acquire({ ...path.options, signal: abort.signal }).catch(() => {});
    await until(
      () => proxy.requests.slice(before).map(kind),
      (requests) => requests.length >= path.requests.length,
    );
    if (path.taken) abort.abort();
    await call;
    stuck.open();
    expect(proxy.requests.slice(before, before + path.requests.length).map(kind)).toEqual(path.requests);
    if (!path.taken) await lock.release();
    await client.close();
  });

  const steps = path.requests.map((request, i) => ({ n: i + 1, request }));

  test.each(steps)('leaves nothing behind if it is aborted at request $n, $request', async ({ n }) => {
    const started = await start(path, n);
    const abort = new AbortController();
    const failed = rejection(started.lock.acquire({ ...path.options, signal: abort.signal }));
    await started.arrived;
    const reason = new Error('aborted by the test');
    abort.abort(reason);
    expect(await failed).toBe(reason);
    await expectNothingLeft(path, started, abort.signal);
  });

  test.each(steps)('leaves nothing behind if it times out at request $n, $request', async ({ n }) => {
    let [timeout, started] = [TIMEOUT, await start(path, n)];
    for (;;) {
      const [asked, { lock, arrived, client, stuck }] = [moment(), started];
      const failed = rejection(lock.acquire({ ...path.options, timeout }));
      const isUnderWay = await Promise.race([arrived.then(() => true), failed.then(() => false)]);
      expect(await failed).toBeInstanceOf(EtcdLockTimeout);
      expect(elapsed(asked)).toBeLessThanOrEqual((timeout + LATE) * 1000);
      if (isUnderWay) break;
      // The machine is too slow: the call has ended before that request.
      stuck.open();
      await client.close();
      [timeout, started] = [2 * timeout, await start(path, n)];
    }
    await expectNothingLeft(path, started);
  });
});

test('acquire leaves no key, in whichever pass of the event loop it is aborted', async () => {
  const name = freshName();
  const lock = new Lock(useClient(), name);
  for (let turns = 0; turns < 60; turns += 1) {
    const abort = new AbortController();
    const call = lock.acquire({ signal: abort.signal }).catch((error: unknown) => error);
    for (let i = 0; i < turns; i += 1) await new Promise(setImmediate);
    abort.abort('stop');
    const outcome = await call;
    if (outcome === true) await lock.release();
    else expect(outcome).toBe('stop');
    await untilQueued(name, 0);
  }
});
