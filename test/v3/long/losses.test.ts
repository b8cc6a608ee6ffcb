import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { OpenHeld } from '../../../src/manager/held.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { Lock } from '../../../src/python/lock.ts';
import { V3Client } from '../../../src/v3/client.ts';
import { type EtcdMember, startEtcd } from '../../support/etcd.ts';
import { gate } from '../../support/gate.ts';
import { base64, gateway } from '../../support/gateway.ts';
import { freshName, useProxy } from '../../support/locks.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { runScript } from '../../support/script.ts';
import { elapsed, moment } from '../../support/stalls/stalls.mjs';
import { useStillClock } from '../../support/still-clock.ts';
import { until } from '../../support/until.ts';
import { isWatch, untilWatched, watchedBy } from '../../support/watched-keys.ts';

/** Seconds: so long that no renewal is due in a test. */
const TTL = 300;
/** Milliseconds within which a holder notices the loss of its key. */
const NOTICED = 1000;

let etcd: EtcdMember;
beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());

const isKeepAlive = ({ path }: ProxiedRequest): boolean => path.endsWith('/lease/keepalive');

/** Locks of a client behind a proxy. */
async function setUp({ target = etcd.url, ttl = TTL } = {}) {
  const proxy = await useProxy(target);
  const client = new V3Client({ endpoints: proxy.url });
  // Not all tests release what they hold.
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return { client, proxy, locks: new LockManager(client, { ttl }) };
}

const remove = (key: string): Promise<unknown> => gateway('/kv/deleterange', { key: base64(key) }, etcd.url);

const untilLost = ({ signal }: Pick<OpenHeld, 'signal'>): Promise<unknown> =>
  until(
    () => signal.aborted,
    (aborted) => aborted,
  );

/** Number of watches that etcd has. */
async function watchers(): Promise<number> {
  const metrics = await (await fetch(`${etcd.url}/metrics`)).text();
  return Number(/^etcd_debugging_mvcc_watcher_total (\d+)/m.exec(metrics)?.[1]);
}

const untilWatchers = (count: number): Promise<unknown> => until(watchers, (present) => present === count);

/** Passes bytes to etcd and back, until `reset` ends all connections. */
async function useTunnel(): Promise<{ url: string; reset(): void }> {
  const ends = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(new URL(etcd.url).port), '127.0.0.1');
    for (const end of [near, far]) {
      ends.add(end);
      end.on('error', () => {}).on('close', () => [near, far].map((one) => one.destroy()));
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const reset = (): void => {
    for (const end of ends) end.resetAndDestroy();
    ends.clear();
  };
  onTestFinished(() => {
    server.close();
    reset();
  });
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, reset };
}

describe('a holder notices within a second, without a renewal,', () => {
  test('that its key was deleted right after the lock was acquired', async () => {
    const { locks, proxy } = await setUp();
    const held = await locks.acquire(freshName());
    const from = moment();
    await remove(held.key);
    await untilLost(held);
    expect(elapsed(from)).toBeLessThan(NOTICED);
    expect(held.signal.reason).toMatchObject({ name: 'EtcdLockLost', cause: { name: 'EtcdLockExpired' } });
    expect(String(held.signal.reason.message)).toContain('its key is gone');
    expect(proxy.requests.filter(isKeepAlive)).toEqual([]);
    expect(await held.release()).toBe(false);
  });

  test('that its key was deleted later, and other holds last', async () => {
    const { locks, proxy } = await setUp();
    const [lost, kept] = [await locks.acquire(freshName()), await locks.acquire(freshName())];
    await untilWatched(proxy, lost.key, kept.key);
    for (const held of [lost, kept]) {
      const from = moment();
      await remove(held.key);
      await untilLost(held);
      expect(elapsed(from)).toBeLessThan(NOTICED);
      if (held === lost) kept.assertHeld();
    }
    expect(proxy.requests.filter(isKeepAlive)).toEqual([]);
  });

  test('that its key was deleted after an outage in which no watch began', async () => {
    const { locks, proxy } = await setUp();
    const held = await locks.acquire(freshName());
    let failed = 0;
    // The pauses between the tries have grown to several seconds then.
    const recover = proxy.intercept((request) => {
      if (!isWatch(request)) return undefined;
      failed += 1;
      return { refuse: true };
    });
    await until(
      () => failed,
      (count) => count >= 8,
    );
    const begun = proxy.next(isWatch, 'headers');
    recover();
    await begun;
    const from = moment();
    await remove(held.key);
    await untilLost(held);
    expect(elapsed(from)).toBeLessThan(NOTICED);
  });

  test('that its lease was revoked, like all holds on that lease', async () => {
    const { locks, proxy } = await setUp();
    const holds = await Promise.all(Array.from({ length: 30 }, () => locks.acquire(freshName())));
    await untilWatched(proxy, ...holds.map(({ key }) => key));
    const grant = proxy.requests.find(({ path }) => path.endsWith('/lease/grant'));
    const { ID } = JSON.parse(`${grant?.body}`) as { ID: string };
    const from = moment();
    await gateway('/kv/lease/revoke', { ID }, etcd.url);
    await Promise.all(holds.map(untilLost));
    expect(elapsed(from)).toBeLessThan(NOTICED);
    expect(proxy.requests.filter(isKeepAlive)).toEqual([]);
  });

  test('that the key of a `Lock` was deleted', async () => {
    const { client } = await setUp();
    const lock = new Lock(client, freshName());
    await lock.acquire({ lockTtl: TTL });
    const { signal } = lock;
    const from = moment();
    await remove(lock.lockKey);
    await untilLost({ signal });
    expect(elapsed(from)).toBeLessThan(NOTICED);
  });

  test('that its key was deleted between the read of the key and the start of the watch', async () => {
    const { locks, proxy } = await setUp();
    const removed = gate();
    proxy.intercept((request) => (isWatch(request) ? { hold: removed.opened } : undefined));
    const arrived = proxy.next(isWatch, 'arrived');
    const held = await locks.acquire(freshName());
    await arrived;
    await remove(held.key);
    held.assertHeld();
    removed.open();
    await untilLost(held);
  });

  test('that its key was deleted while the stream is replaced by one with more keys', async () => {
    const { locks, proxy } = await setUp();
    const held = await locks.acquire(freshName());
    await untilWatched(proxy, held.key);
    const removed = gate();
    proxy.intercept((request) => (isWatch(request) ? { hold: removed.opened } : undefined));
    const arrived = proxy.next(isWatch, 'arrived');
    const other = await locks.acquire(freshName());
    await arrived;
    await remove(held.key);
    removed.open();
    await untilLost(held);
    other.assertHeld();
    await other.release();
  });
});

describe('a loss is noticed', () => {
  test.each([
    ['refused', { refuse: true }],
    ['not answered', { silent: true }],
  ] as const)('although the first streams were %s', async (_, action) => {
    const { locks, proxy } = await setUp();
    let failed = 0;
    proxy.intercept((request) => {
      if (!isWatch(request) || failed === 2) return undefined;
      failed += 1;
      return action;
    });
    const held = await locks.acquire(freshName());
    await until(
      () => proxy.requests.filter(isWatch),
      ({ length }) => length > 2,
    );
    held.assertHeld();
    await remove(held.key);
    await untilLost(held);
    expect(failed).toBe(2);
  });

  test('after all connections were reset, even if the key was deleted in the meantime', async () => {
    const { url, reset } = await useTunnel();
    const { locks, proxy } = await setUp({ target: url });
    const held = await locks.acquire(freshName());
    await untilWatched(proxy, held.key);
    reset();
    await remove(held.key);
    await untilLost(held);
  });

  test('after the revision of the watch was compacted', async () => {
    const { locks, proxy } = await setUp();
    const compacted = gate();
    const endHold = proxy.intercept((request) => (isWatch(request) ? { hold: compacted.opened } : undefined));
    const arrived = proxy.next(isWatch, 'arrived');
    const held = await locks.acquire(freshName());
    await arrived;
    await gateway('/kv/put', { key: base64('other'), value: base64('1') }, etcd.url);
    const { header } = (await gateway(
      '/kv/put',
      { key: base64('other'), value: base64('2') },
      etcd.url,
    )) as unknown as {
      header: { revision: string };
    };
    await gateway('/kv/compaction', { revision: header.revision }, etcd.url);
    endHold();
    compacted.open();
    await until(
      () => proxy.requests.filter(isWatch),
      ({ length }) => length > 1,
    );
    held.assertHeld();
    await remove(held.key);
    await untilLost(held);
  });
});

describe('the watch of held entries', () => {
  test('is not begun for short holds: a cycle stays two requests', async () => {
    useStillClock();
    const { locks, proxy } = await setUp();
    const name = freshName();
    await locks.request(name, () => undefined);
    const before = proxy.requests.length;
    const cycles = 10;
    // Together longer than the time after which a hold is watched.
    for (let i = 0; i < cycles; i += 1) {
      await locks.request(name, () => undefined);
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(proxy.requests.slice(before).map(({ path }) => path)).toEqual(
      Array(cycles).fill(['/v3/kv/txn', '/v3/kv/deleterange']).flat(),
    );
  });

  test('uses one stream for many holds, and none once they are released', async () => {
    const { locks, proxy } = await setUp();
    await untilWatchers(0);
    const holds = await Promise.all(Array.from({ length: 40 }, (_, i) => locks.acquire(`w-${i}`)));
    await untilWatched(proxy, ...holds.map(({ key }) => key));
    await untilWatchers(40);
    expect([...proxy.open].filter(isWatch)).toHaveLength(1);
    const asked = proxy.requests.filter(isWatch).length;
    const [last, ...others] = holds;
    for (const held of others) await held.release();
    // The release of some is no reason for a new stream.
    expect(proxy.requests.filter(isWatch)).toHaveLength(asked);
    expect(watchedBy(proxy)).toContain(`${last?.key}`);
    await last?.release();
    await untilWatchers(0);
    expect(proxy.requests.filter(isWatch)).toHaveLength(asked);
  });

  test('covers as many of 300 holds as fit into four streams; the others learn of a loss by the next renewal', async () => {
    const { locks, proxy } = await setUp({ ttl: 24 });
    const holds: OpenHeld[] = [];
    // Few at once: a busy machine takes seconds for 300.
    while (holds.length < 300)
      holds.push(...(await Promise.all(Array.from({ length: 20 }, () => locks.acquire(freshName())))));
    const watched = await until(
      () => watchedBy(proxy),
      // Four requests of 8 kB.
      ({ length }) => length === 4 * 37,
    );
    expect([...proxy.open].filter(isWatch)).toHaveLength(4);
    const [unwatched] = holds.filter(({ key }) => !watched.includes(key));
    // No renewal that has begun already shows the loss.
    const left = unwatched?.expiresIn() ?? 0;
    await until(
      () => unwatched?.expiresIn() ?? 0,
      (seconds) => seconds > left,
    );
    const renewals = proxy.requests.filter(isKeepAlive).length;
    await remove(`${unwatched?.key}`);
    await until(
      () => unwatched?.signal.aborted,
      (aborted) => aborted === true,
    );
    expect(proxy.requests.filter(isKeepAlive).length).toBeGreaterThan(renewals);
    // A stream may just be replaced.
    await until(
      () => watchedBy(proxy),
      ({ length }) => length === 4 * 37,
    );
    await Promise.all(holds.map((held) => held.release()));
  });

  test('sends few requests in an outage, reports no loss by itself, and continues afterwards', async () => {
    const { url, reset } = await useTunnel();
    const { locks, proxy } = await setUp({ target: url });
    const holds = await Promise.all(Array.from({ length: 5 }, () => locks.acquire(freshName())));
    await untilWatched(proxy, ...holds.map(({ key }) => key));
    const recover = proxy.intercept(() => ({ refuse: true }));
    const [before, from] = [proxy.requests.length, performance.now()];
    reset();
    await until(
      () => proxy.requests.length - before,
      (count) => count > 5,
    );
    const seconds = (performance.now() - from) / 1000;
    expect(proxy.requests.length - before).toBeLessThanOrEqual(5 + 5 * seconds);
    for (const held of holds) held.assertHeld();
    recover();
    const [first] = holds;
    await remove(`${first?.key}`);
    await until(
      () => first?.signal.aborted,
      (aborted) => aborted === true,
    );
  });

  test('does not keep the process alive', async () => {
    const script = `
      import { setTimeout as sleep } from 'node:timers/promises';
      import { EtcdClient, LockManager } from 'etcd-v2-lock';
      const client = new EtcdClient({ endpoints: process.env.ETCD, api: 'v3' });
      await new LockManager(client, { ttl: 4 }).acquire(process.env.NAME);
      for (const end = Date.now() + 60_000; Date.now() < end; await sleep(20)) {
        const metrics = await (await fetch(process.env.ETCD + '/metrics')).text();
        if (/^etcd_debugging_mvcc_watcher_total [1-9]/m.test(metrics)) break;
      }
      console.log('end of script');
    `;
    await untilWatchers(0);
    const { code, stdout, stderr } = await runScript(script, { ETCD: etcd.url, NAME: freshName() });
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'end of script\n', stderr: '' });
    await untilWatchers(0);
  });
});
