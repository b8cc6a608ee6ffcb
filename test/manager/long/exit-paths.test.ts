import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EtcdLockTimeout, LockManager, type RequestOptions } from '../../../src/index.ts';
import { useBeatClock } from '../../support/beat-clock.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { listenersOf, trackTimers } from '../../support/leaks.ts';
import { freshName, queueOn, raw, rejection, untilQueued, useClient, useProxy } from '../../support/locks.ts';
import type { Action, ProxiedRequest } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

/** A kind of request for a lock, and the requests that it sends to etcd. */
interface Path {
  readonly title: string;
  readonly options: RequestOptions;
  /** Values of the entries in the queue before the request. If the request waits, the tests remove them later. */
  readonly queue: readonly string[];
  readonly requests: readonly string[];
  /** Whether the request waits until the entries before it are removed. */
  readonly waits: boolean;
  /** What the callback gets: a hold, or null. */
  readonly gets: 'held' | 'null';
}

/** Timeout in seconds, shorter than the time after which the client retries an unanswered request. */
const TIMEOUT = 0.3;

const QUORUM_READ = 'GET queue by quorum';
const APPEND = 'POST queue';
const LIST = 'GET queue';
const WAIT = 'GET key waiting';
const REMOVE = 'DELETE key';

const HELD = { waits: false, gets: 'held' } as const;
const WAITING = { waits: true, gets: 'held' } as const;

const paths: readonly Path[] = [
  { title: 'a free lock', options: {}, queue: [], requests: [APPEND, LIST, REMOVE], ...HELD },
  { title: 'a taken lock', options: {}, queue: ['owner'], requests: [APPEND, LIST, WAIT], ...WAITING },
  {
    title: 'a shared lock that another reader holds',
    options: { mode: 'shared' },
    queue: ['shared:other'],
    requests: [APPEND, LIST, REMOVE],
    ...HELD,
  },
  {
    title: 'a shared lock behind an exclusive holder',
    options: { mode: 'shared' },
    queue: ['owner', 'shared:other'],
    requests: [APPEND, LIST, WAIT],
    ...WAITING,
  },
  {
    title: 'a free lock with ifAvailable',
    options: { ifAvailable: true },
    queue: [],
    requests: [QUORUM_READ, APPEND, LIST, REMOVE],
    ...HELD,
  },
  {
    title: 'a taken lock with ifAvailable',
    options: { ifAvailable: true },
    queue: ['owner'],
    requests: [QUORUM_READ],
    waits: false,
    gets: 'null',
  },
  {
    title: 'a lock with a leftover entry of a dead predecessor',
    options: { identity: 'node-1' },
    queue: ['id:node-1:dead'],
    requests: [APPEND, LIST, REMOVE, QUORUM_READ, REMOVE],
    ...HELD,
  },
];

const isLeftOver = (value: string): boolean => value.startsWith('id:');

function kind({ method, path, query }: ProxiedRequest): string {
  const what = /\/\d{20}$/.test(path) ? 'key' : 'queue';
  if (query.get('wait') === 'true') return `${method} ${what} waiting`;
  return `${method} ${what}${query.get('quorum') === 'true' ? ' by quorum' : ''}`;
}

/** Repeats count once: on a busy machine a connection may be too slow, and the client then retries the request. */
function kinds(requests: readonly (ProxiedRequest | string)[]): string[] {
  const all = requests.map((request) => (typeof request === 'string' ? request : kind(request)));
  return all.filter((one, i) => one !== all[i - 1]);
}

const clock = useBeatClock();
let timers: ReturnType<typeof trackTimers>;
beforeEach(() => {
  timers = trackTimers();
});
afterEach(() => timers.stop());

/**
 * Prepares the queue, and a manager behind a proxy that applies the action to its n-th request.
 * @param readTimeout seconds after which the client retries an unanswered request
 */
async function start({ queue }: Path, n = 0, action: Action = 'forward', readTimeout = 5) {
  const name = freshName();
  const proxy = await useProxy();
  const client = useClient({ endpoints: proxy.url, readTimeout });
  for (const value of queue) await raw('POST', `/_locks/${name}`, { value });
  let seen = 0;
  const arrived = new Promise<void>((resolve) => {
    proxy.intercept(() => {
      seen += 1;
      if (seen !== n) return undefined;
      resolve();
      return action;
    });
  });
  return { name, proxy, client, locks: new LockManager(client, { ttl: 4 }), arrived };
}

type Started = Awaited<ReturnType<typeof start>>;

/** Forwards the n-th request, and waits for its answer: the client cannot clean up what etcd has not carried out yet. */
async function carriedOut({ proxy }: Started, n: number, stuck: Gate): Promise<void> {
  const late = proxy.requests[n - 1];
  const answered = proxy.next((request) => request === late, 'headers');
  stuck.open();
  await answered;
}

/** Expects that only the keys of others remain, and no timer, listener or socket. */
async function expectNothingLeft({ queue }: Path, { name, proxy, client }: Started, others = queue) {
  const stay = others.filter((value) => !isLeftOver(value));
  await until(
    async () => (await queueOn(name)).map(({ value }) => value).filter((value) => !isLeftOver(value)),
    (values) => values.join() === stay.join(),
  );
  await client.close();
  expect(listenersOf(client.store.pending.closing)).toBe(0);
  await until(
    () => ({ timers: timers.live, sockets: proxy.openSockets }),
    (left) => left.timers === 0 && left.sockets === 0,
  );
  expect((await queueOn(name)).filter(({ value }) => !isLeftOver(value))).toHaveLength(stay.length);
}

/** Removes the entries before the request. The one that it waits for is the last, as the request proceeds right after that. */
async function release({ queue }: Path, name: string): Promise<void> {
  for (const { key, value } of (await queueOn(name)).toReversed()) if (queue.includes(value)) await raw('DELETE', key);
}

describe.each(paths)('a request for $title', (path) => {
  const { options, requests, waits } = path;
  const steps = requests.map((request, i) => ({ n: i + 1, request }));

  test('sends the requests that the tests below disturb one by one', async () => {
    const started = await start(path);
    const { name, proxy, locks } = started;
    const request = locks.request(name, options, () => {});
    const asked = await until(
      () => kinds(proxy.requests),
      (all) => all.length >= kinds(requests).length,
    );
    expect(asked.slice(0, kinds(requests).length)).toEqual(kinds(requests));
    if (waits) await release(path, name);
    await request;
    await expectNothingLeft(path, started, waits ? [] : path.queue);
  });

  const faults: readonly (readonly [string, Action])[] = [
    ['is carried out, but not answered', { swallow: true }],
    ['is refused', { refuse: true }],
    ['is never answered', { silent: true }],
  ];
  const disturbed = steps.flatMap((step) => faults.map(([what, action]) => ({ ...step, what, action })));

  test.each(disturbed)('runs once, with one key, when request $n, $request, $what', async ({ n, action }) => {
    const started = await start(path, n, action, 0.3);
    const { name, locks, arrived } = started;
    const got: unknown[] = [];
    const request = locks.request(name, options, async (held) => {
      const values = (await queueOn(name)).map(({ key }) => key);
      got.push(held === null ? 'null' : 'held');
      if (held) expect(values.filter((key) => key === held.key)).toHaveLength(1);
      if (held) expect(values).toHaveLength(1 + (waits ? 0 : path.queue.filter((value) => !isLeftOver(value)).length));
      return 'result';
    });
    await arrived;
    if (waits) {
      await untilQueued(name, path.queue.length + 1);
      await release(path, name);
    }
    expect(await request).toBe('result');
    expect(got).toEqual([path.gets]);
    await expectNothingLeft(path, started, waits ? [] : path.queue);
  });

  // A signal or a timeout can end the wait, but not the release.
  const ofTheWait = steps.filter(({ n, request }) => request !== REMOVE || n < requests.length);

  test.each(ofTheWait)('aborted at request $n, $request, leaves nothing behind', async ({ n }) => {
    const stuck = gate();
    const started = await start(path, n, { hold: stuck.opened });
    const abort = new AbortController();
    const failed = rejection(started.locks.request(started.name, { ...options, signal: abort.signal }, () => 'ran'));
    await started.arrived;
    const reason = new Error('aborted by the test');
    abort.abort(reason);
    expect(await failed).toBe(reason);
    expect(listenersOf(abort.signal)).toBe(0);
    await carriedOut(started, n, stuck);
    await expectNothingLeft(path, started);
  });

  test.each(ofTheWait)('timed out at request $n, $request, leaves nothing behind', async ({ n }) => {
    const stuck = gate();
    const started = await start(path, n, { hold: stuck.opened });
    clock.pause();
    const failed = rejection(started.locks.request(started.name, { ...options, timeout: TIMEOUT }, () => 'ran'));
    await started.arrived;
    clock.resume();
    expect(await failed).toBeInstanceOf(EtcdLockTimeout);
    await carriedOut(started, n, stuck);
    await expectNothingLeft(path, started);
  });
});
