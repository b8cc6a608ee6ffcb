import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  EtcdConnectionFailed,
  EtcdKeysLeft,
  EtcdLockLost,
  type Held,
  LockManager,
  type LockManagerOptions,
  type RequestTrace,
} from '../../src/index.ts';
import { aborted } from '../suites/lock/locks.ts';
import { useBeatClock } from '../support/beat-clock.ts';
import { gate } from '../support/gate.ts';
import { freshName, queueOn, raw, rejection, untilQueued, useClient, useProxy } from '../support/locks.ts';
import { first, LOST } from '../support/lost-requests.ts';
import { useManager } from '../support/managers.ts';
import type { Action, ProxiedRequest } from '../support/proxy.ts';
import { until } from '../support/until.ts';

const isRemoval = ({ method }: ProxiedRequest): boolean => method === 'DELETE';
const isRenewal = ({ method }: ProxiedRequest): boolean => method === 'PUT';
const isAppend = ({ method }: ProxiedRequest): boolean => method === 'POST';

async function setUp(options: LockManagerOptions = { ttl: 60 }) {
  const proxy = await useProxy();
  const name = freshName();
  const client = useClient({ endpoints: proxy.url, readTimeout: 1 });
  /** Applies the action to the first `count` requests that match. */
  const onFirst = (match: (request: ProxiedRequest) => boolean, action: Action, count = 1): void => {
    proxy.intercept(first(count, match, action));
  };
  return { proxy, name, client, locks: new LockManager(client, options), onFirst };
}

/** Collects the traces of all releases of one lock from now on. */
function releasesOf(name: string): readonly RequestTrace[] {
  const traces: RequestTrace[] = [];
  const listener = (message: unknown): void => {
    const trace = message as RequestTrace;
    if (trace.name === name) traces.push(trace);
  };
  subscribe('tracing:etcd-v2-lock:request:released', listener);
  onTestFinished(() => {
    unsubscribe('tracing:etcd-v2-lock:request:released', listener);
  });
  return traces;
}

describe('a release', () => {
  test.each([
    ['is carried out, but not answered', { swallow: true }],
    ['is refused', { refuse: true }],
  ] satisfies [string, Action][])(
    'whose removal %s keeps the result, reports the error in the trace and finishes in the background',
    async (_, action) => {
      const { name, locks, onFirst } = await setUp();
      const released = releasesOf(name);
      onFirst(isRemoval, action, LOST);
      expect(await locks.request(name, () => 'result')).toBe('result');
      expect(released).toMatchObject([{ cleanupError: expect.any(Error), lost: undefined, held: expect.any(Number) }]);
      await untilQueued(name, 0);
    },
  );

  test('whose removal gets no answer in time reports the error in the trace and finishes in the background', async () => {
    const { proxy, name, locks } = await setUp();
    const released = releasesOf(name);
    const heal = proxy.intercept((request) => (isRemoval(request) ? { silent: true } : undefined));
    expect(await locks.request(name, () => 'result')).toBe('result');
    expect(released).toMatchObject([{ cleanupError: expect.any(Error), lost: undefined, held: expect.any(Number) }]);
    heal();
    await untilQueued(name, 0);
  });

  test('that fails attaches its error to the error of the callback', async () => {
    const { name, locks, onFirst } = await setUp();
    onFirst(isRemoval, { refuse: true }, LOST);
    const own = new Error('own');
    const request = locks.request(name, () => {
      throw own;
    });
    expect(await rejection(request)).toBe(own);
    expect(own).toHaveProperty('lockError', expect.any(EtcdConnectionFailed));
    await untilQueued(name, 0);
  });

  test('that fails delays the next requests only until the key is gone', async () => {
    const { name, locks, onFirst } = await setUp();
    const first = await locks.acquire(name);
    onFirst(isRemoval, { refuse: true }, LOST);
    const next = [locks.request(name, ({ fencingToken }) => fencingToken), useManager().request(name, () => 'other')];
    expect(await first.release()).toBe(true);
    const [token, other] = await Promise.all(next);
    expect(token).toBeGreaterThan(first.fencingToken);
    expect(other).toBe('other');
    expect(await queueOn(name)).toEqual([]);
  });

  test('that etcd carries out late does not remove the key of the next hold of the same process', async () => {
    const { proxy, name, locks, onFirst } = await setUp();
    const { opened, open } = gate();
    const first = await locks.acquire(name);
    onFirst(isRemoval, { hold: opened, cut: true });
    const removal = proxy.next(isRemoval, 'arrived');
    await first.release();
    const arrived = await removal;
    const second = await locks.acquire(name);
    const late = proxy.next((request) => request === arrived, 'answered');
    open();
    await late;
    expect(await queueOn(name)).toMatchObject([{ key: second.key }]);
    expect(await second.release()).toBe(true);
    expect(await queueOn(name)).toEqual([]);
  });
});

describe('a release whose removal gets no answer', () => {
  const clock = useBeatClock();

  test('sends it again, and resolves once the key is removed', async () => {
    const { proxy, name, locks, onFirst } = await setUp();
    const released = releasesOf(name);
    onFirst(isRemoval, { silent: true });
    // From the second removal on, the release has all the time that etcd needs.
    proxy.intercept((request) => {
      if (isRemoval(request)) clock.pause();
      return undefined;
    });
    await locks.request(name, () => 'result');
    expect(released).toMatchObject([{ cleanupError: undefined, lost: undefined }]);
    expect(await queueOn(name)).toEqual([]);
    expect(proxy.requests.filter(isRemoval)).toHaveLength(2);
  });
});

describe('a release that keeps the entry because of holdAtLeast', () => {
  test.each([
    ['is carried out, but not answered', { swallow: true }],
    ['is refused', { refuse: true }],
    ['is neither carried out nor answered', { silent: true }],
  ] satisfies [string, Action][])('sets the last TTL even if a request for that %s', async (_, action) => {
    const { name, locks, onFirst } = await setUp();
    onFirst(isRenewal, action, LOST);
    const key = await locks.request(name, { holdAtLeast: 300 }, (held) => held.key);
    const [entry] = await until(
      () => queueOn(name),
      ([only]) => (only?.ttl ?? 0) > 60,
    );
    expect(entry?.key).toBe(key);
    await raw('DELETE', key);
  });

  test('lets close() name the key if the last TTL could not be set', async () => {
    const { proxy, name, client, locks } = await setUp();
    proxy.intercept((request) => (isRenewal(request) ? { silent: true } : undefined));
    const key = await locks.request(name, { holdAtLeast: 300 }, (held) => held.key);
    const error = await rejection(client.close({ timeout: 0.3 }));
    expect(error).toBeInstanceOf(EtcdKeysLeft);
    expect(error).toHaveProperty('keys', [key]);
    await raw('DELETE', key);
  });
});

describe('a release during a renewal', () => {
  /** Acquires a lock, and holds back its first renewal before it reaches etcd. */
  async function renewing(holdAtLeast = 0) {
    const { proxy, name, locks } = await setUp({ ttl: 6 });
    const { opened, open } = gate();
    onTestFinished(open);
    const isUsual = (request: ProxiedRequest) =>
      isRenewal(request) && new URLSearchParams(request.body).get('ttl') === '6';
    proxy.intercept((request) => (isUsual(request) ? { hold: opened } : undefined));
    const arrived = proxy.next(isUsual, 'arrived');
    const held = await locks.acquire(name, { holdAtLeast });
    const renewal = await arrived;
    const late = proxy.next((request) => request === renewal, 'answered');
    return { name, held, renewal, carryOut: open, late };
  }

  test('does not wait for the answer to the renewal', async () => {
    const { name, held, renewal } = await renewing();
    expect(await held.release()).toBe(true);
    expect(renewal.status).toBeUndefined();
    expect(await queueOn(name)).toEqual([]);
  });

  test('is final: a renewal that etcd carries out later does not create the key again', async () => {
    const { name, held, carryOut, late } = await renewing();
    await held.release();
    carryOut();
    expect((await late).status).toBe(404);
    expect(await queueOn(name)).toEqual([]);
  });

  test('is final with holdAtLeast: a renewal that etcd carries out later does not change the last TTL', async () => {
    const { name, held, carryOut, late } = await renewing(300);
    expect(await held.release()).toBe(true);
    carryOut();
    expect((await late).status).toBe(412);
    const [entry] = await queueOn(name);
    expect(entry?.key).toBe(held.key);
    expect(entry?.ttl).toBeGreaterThan(60);
    await raw('DELETE', held.key);
  });
});

describe('a permanent outage of etcd', () => {
  test('aborts the signal of a hold, and its release ends with the error in the trace', async () => {
    const { proxy, name, locks } = await setUp({ ttl: 3 });
    const released = releasesOf(name);
    const holds: Held[] = [];
    const request = rejection(
      locks.request(name, async (held) => {
        await proxy.stop();
        await aborted(held.signal);
        holds.push(held);
      }),
    );
    expect(await request).toBeInstanceOf(EtcdLockLost);
    expect(holds[0]?.signal.reason).toBe(await request);
    expect(released).toMatchObject([{ lost: await request, cleanupError: expect.any(Error) }]);
    await untilQueued(name, 0);
  });

  test('does not delay the timeouts of two waiting requests of one process', async () => {
    const { proxy, name, locks } = await setUp({ ttl: 5, timeout: 10 });
    const holder = await useManager().acquire(name);
    const first = rejection(locks.request(name, () => 'ran'));
    const second = rejection(locks.request(name, () => 'ran'));
    await untilQueued(name, 2);
    await proxy.stop();
    expect(await first).toHaveProperty('name', 'EtcdWatchTimedOut');
    expect(await second).toHaveProperty('name', 'EtcdWatchTimedOut');
    await untilQueued(name, 1);
    await holder.release();
  });
});

test('an append that reaches etcd only after its request was aborted leaves no key', async () => {
  const { proxy, name, locks, onFirst } = await setUp();
  const { opened, open } = gate();
  onFirst(isAppend, { hold: opened, cut: true });
  const arrived = proxy.next(isAppend, 'arrived');
  const abort = new AbortController();
  const ended = rejection(locks.request(name, { signal: abort.signal }, () => 'ran'));
  const append = await arrived;
  abort.abort('enough');
  expect(await ended).toBe('enough');
  const late = proxy.next((request) => request === append, 'answered');
  open();
  expect((await late).status).toBe(201);
  await until(
    () => raw('GET', `/_locks/${name}?quorum=true`),
    ({ body }) => body.node?.nodes === undefined,
  );
});

test('releases leave nothing in the list of entries of this process', async () => {
  const own = (globalThis as { [key: symbol]: Map<string, number> })[Symbol.for('etcd-v2-lock.own')];
  const name = freshName();
  const entries = () => [...(own?.keys() ?? [])].filter((id) => id.includes(name));
  const locks = useManager({ ttl: 3600 });
  await locks.request(name, () => expect(entries()).toHaveLength(1));
  await locks.request(name, { mode: 'shared' }, () => {});
  expect(entries()).toEqual([]);
});
