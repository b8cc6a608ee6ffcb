// Outages that last longer than the TTL. A leader of etcd that starts gives every lease its whole TTL again, so that entries survive.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { EtcdClient, EtcdLockLost, LockManager } from '../../../src/index.ts';
import { startRunOn } from '../../cli/running.ts';
import { aborted } from '../../suites/lock/locks.ts';
import { startEtcd } from '../../support/etcd.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName } from '../../support/locks.ts';
import { until } from '../../support/until.ts';

/** Seconds: on a busy machine, a hold must survive until a request that is late has been answered. */
const TTL = 6;
/** Milliseconds. */
const OUTAGE = TTL * 1000 + 500;

/** Starts an etcd, and a queue that begins with an entry that does not expire. */
async function setUp() {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const name = freshName();
  const first = base64(`/_locks/${name}/first`);
  await gateway('/kv/put', { key: first, value: '' }, etcd.url);
  const client = new EtcdClient({ api: 'v3', endpoints: etcd.url });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  const queue = () => entriesBelow(`/_locks/${name}/`, etcd.url);
  return {
    etcd,
    name,
    locks: new LockManager(client, { ttl: TTL }),
    queue,
    untilQueued: (count: number) => until(queue, ({ length }) => length === count),
    free: () => gateway('/kv/deleterange', { key: first }, etcd.url),
    leases: async () => (await gateway('/lease/leases', {}, etcd.url)).leases ?? [],
  };
}

test('a request without a timeout survives an etcd that is down for longer than the TTL, with one entry and a greater token', async () => {
  const { etcd, name, locks, queue, untilQueued, free } = await setUp();
  const waiting = locks.request(name, async ({ fencingToken }) => ({ fencingToken, entries: await queue() }));
  const [, before] = await untilQueued(2);
  await etcd.kill();
  await sleep(OUTAGE);
  await etcd.restart();
  await free();
  const { fencingToken, entries } = await waiting;
  expect(entries).toHaveLength(1);
  expect(fencingToken).toBeGreaterThan(before?.rank ?? 0n);
  expect(await queue()).toEqual([]);
});

test('a hold is lost in such an outage, and its entry is removed after it, so that the next waiter gets the lock', async () => {
  const { etcd, name, locks, queue, untilQueued, free, leases } = await setUp();
  await free();
  const held = await locks.acquire(name);
  await etcd.kill();
  await aborted(held.signal);
  expect(held.signal.reason).toBeInstanceOf(EtcdLockLost);
  await etcd.restart();
  expect(await held.release()).toBe(false);
  await untilQueued(0);
  const next = await locks.acquire(name);
  expect(next.fencingToken).toBeGreaterThan(held.fencingToken);
  expect(await next.release()).toBe(true);
  expect(await queue()).toEqual([]);
  await locks.request(name, () => undefined);
  expect((await leases()).length).toBeLessThanOrEqual(1);
});

test('`run` without a timeout survives such a pause, then runs its command and exits with its exit code', async () => {
  const { etcd, name, queue, untilQueued, free } = await setUp();
  const options = ['--api', 'v3', '--ttl', String(TTL)];
  const { result } = startRunOn(etcd.url, name, ...options, '--', 'sh', '-c', 'echo $ETCD_LOCK_KEY; exit 3');
  await untilQueued(2);
  await etcd.pause();
  await sleep(OUTAGE);
  etcd.resume();
  await free();
  const { code, stdout } = await result;
  expect(code).toBe(3);
  expect(stdout).toContain(`/_locks/${name}/`);
  expect(await queue()).toEqual([]);
});
