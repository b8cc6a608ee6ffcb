import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { gate } from '../support/gate.ts';
import { base64, entriesBelow, gateway } from '../support/gateway.ts';
import { freshName, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { useStillClock } from '../support/still-clock.ts';
import { until } from '../support/until.ts';

const isReplacement = ({ path, body }: ProxiedRequest): boolean =>
  path.endsWith('/kv/txn') && body.includes('request_put') && body.includes('request_delete_range');

/** Locks of a client behind a proxy, and of another client. */
async function setUp() {
  const proxy = await useProxy();
  const clients = [proxy.url, inject('etcd')].map((endpoints) => new V3Client({ endpoints }));
  onTestFinished(async () => {
    for (const client of clients) await client.close({ timeout: 0 }).catch(() => {});
  });
  const [locks, others] = clients.map((client) => new LockManager(client, { ttl: 60 })) as [LockManager, LockManager];
  const name = freshName();
  return {
    proxy,
    client: clients[0] as V3Client,
    locks,
    others,
    name,
    entries: () => entriesBelow(`/_locks/${name}/`),
  };
}

const untilLength = (entries: () => Promise<readonly unknown[]>, count: number) =>
  until(entries, ({ length }) => length === count);

describe('requests of one process that wait for each other', () => {
  test('cost one request each, and one for the last removal', async () => {
    useStillClock();
    const { proxy, locks, name, entries } = await setUp();
    await locks.request(name, () => undefined);
    const before = proxy.requests.length;
    const order: number[] = [];
    const tokens = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        locks.request(name, (held) => {
          order.push(i);
          return held.fencingToken;
        }),
      ),
    );
    const since = proxy.requests.slice(before);
    expect(since.map(({ path }) => path)).toEqual([...Array(40).fill('/v3/kv/txn'), '/v3/kv/deleterange']);
    expect(since.filter(isReplacement)).toHaveLength(39);
    expect(order).toEqual(Array.from({ length: 40 }, (_, i) => i));
    expect(tokens.toSorted((a, b) => Number(a - b))).toEqual(tokens);
    expect(new Set(tokens).size).toBe(40);
    expect(await entries()).toEqual([]);
  });

  test('let another client’s waiter hold the lock in between', async () => {
    const { locks, others, name, entries } = await setUp();
    const order: string[] = [];
    const by = (who: string) => () => {
      order.push(who);
    };
    const first = await locks.acquire(name);
    const own = ['own 1', 'own 2'].map((who) => locks.request(name, by(who)));
    const other = others.request(name, by('other'));
    await untilLength(entries, 2);
    expect(await first.release()).toBe(true);
    await Promise.all([...own, other]);
    expect(order).toEqual(['other', 'own 1', 'own 2']);
    expect(await entries()).toEqual([]);
  });

  test('are released only when etcd has answered', async () => {
    const { proxy, locks, name } = await setUp();
    const answered = gate();
    proxy.intercept((request) => (isReplacement(request) ? { answerAfter: answered.opened } : undefined));
    const first = await locks.acquire(name);
    const next = locks.acquire(name);
    const arrived = proxy.next(isReplacement, 'headers');
    let isReleased = false;
    const released = first.release().then((wasHeld) => {
      isReleased = true;
      return wasHeld;
    });
    await arrived;
    expect(isReleased).toBe(false);
    answered.open();
    expect(await released).toBe(true);
    await (await next).release();
  });

  test('hold the lock in turn although the first answer to each replacement is lost', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { proxy, client, locks, others, name, entries } = await setUp();
      let lost = 0;
      proxy.intercept((request) => {
        if (lost > 0 || !isReplacement(request)) return undefined;
        lost += 1;
        return { swallow: true };
      });
      const first = await locks.acquire(name);
      const next = locks.acquire(name);
      expect(await first.release()).toBe(true);
      const held = await next;
      expect(lost).toBe(1);
      expect(held.fencingToken).toBeGreaterThan(first.fencingToken);
      expect(await entries()).toMatchObject([{ key: held.key }]);
      expect(await held.release()).toBe(true);
      await untilLength(entries, 0);
      await others.request(name, () => undefined);
      await client.close();
    }
  });

  test('hold the lock in turn although no replacement is answered', async () => {
    const { proxy, locks, name, entries } = await setUp();
    proxy.intercept((request) => (isReplacement(request) ? { refuse: true } : undefined));
    const first = await locks.acquire(name);
    const next = locks.acquire(name);
    expect(await first.release()).toBe(true);
    const held = await next;
    await until(entries, ([one, ...more]) => one?.key === held.key && more.length === 0);
    expect(await held.release()).toBe(true);
    await untilLength(entries, 0);
  });

  test('leave no key behind if a replacement is carried out late', async () => {
    const { proxy, client, locks, name, entries } = await setUp();
    const stuck = gate();
    let sent = 0;
    proxy.intercept((request) => {
      if (!isReplacement(request)) return undefined;
      sent += 1;
      return sent === 1 ? { hold: stuck.opened, cut: true } : undefined;
    });
    const first = await locks.acquire(name);
    const next = locks.acquire(name);
    await first.release();
    const held = await next;
    expect(await held.release()).toBe(true);
    const late = proxy.next(isReplacement, 'answered');
    stuck.open();
    await late;
    await client.close();
    expect(await entries()).toEqual([]);
  });

  test('do not bring back a key that was deleted, and hold the lock all the same', async () => {
    const { locks, name, entries } = await setUp();
    const first = await locks.acquire(name);
    const next = locks.acquire(name);
    await gateway('/kv/deleterange', { key: base64(first.key) });
    await first.release();
    const held = await next;
    expect(await entries()).toMatchObject([{ key: held.key }]);
    await held.release();
    expect(await entries()).toEqual([]);
  });

  test('do not remove a key that somebody else has written', async () => {
    const { locks, name, entries } = await setUp();
    const first = await locks.acquire(name);
    const next = locks.acquire(name, { timeout: 5 }).catch((error: unknown) => error);
    await gateway('/kv/put', { key: base64(first.key), value: base64('somebody else') });
    await first.release();
    expect(await next).toMatchObject({ name: 'EtcdWatchTimedOut' });
    await untilLength(entries, 1);
    expect(await entries()).toMatchObject([{ key: first.key, value: 'somebody else' }]);
  });

  test('settle the entry before them if they are aborted', async () => {
    const { proxy, locks, name, entries } = await setUp();
    const first = await locks.acquire(name);
    const abort = new AbortController();
    proxy.intercept((request) => {
      if (!isReplacement(request)) return undefined;
      abort.abort(new Error('enough'));
      return { silent: true };
    });
    const next = locks.acquire(name, { signal: abort.signal }).catch((error: unknown) => error);
    expect(await first.release()).toBe(true);
    expect(await next).toMatchObject({ message: 'enough' });
    await untilLength(entries, 0);
  });

  test('are not mixed with `holdAtLeast`: that entry stays', async () => {
    const { locks, name, entries } = await setUp();
    const first = await locks.acquire(name, { holdAtLeast: 5 });
    const next = locks.acquire(name);
    await first.release();
    // The next request may be in the queue already.
    expect((await entries())[0]).toMatchObject({ key: first.key });
    await (await next).release();
  });
});
