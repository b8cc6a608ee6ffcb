import { expect, test } from 'vitest';
import { EtcdNotDir } from '../../../src/errors.ts';
import { Lock, LockManager } from '../../../src/index.ts';
import { V2LockStore } from '../../../src/v2/locks/store.ts';
import { UnusedDirectories } from '../../../src/v2/locks/unused-directories.ts';
import type { V2ClientOptions } from '../../../src/v2/options.ts';
import { freshName, queueOn, raw, untilQueued, useClient, useProxy } from '../../support/locks.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

const SECOND = 1000;
/** Milliseconds: longer than a lock is unused before its directory is removed. */
const LONG_UNUSED = 17 * SECOND;

/** Returns locks whose unused directories are removed by the time of a test. */
function useLocks(options: V2ClientOptions = {}) {
  const clock = new ManualClock();
  const client = useClient(options);
  const unused = new UnusedDirectories(client, clock);
  const store = new V2LockStore(client, unused);
  const lockClient = { clusterId: undefined, store };
  return { clock, client, unused, lockClient, locks: new LockManager(lockClient) };
}

const exists = async (name: string): Promise<boolean> => (await raw('GET', `/_locks/${name}`)).status === 200;
const untilGone = (name: string) =>
  until(
    () => exists(name),
    (there) => !there,
  );
const isRemovalOfDirectory = ({ method, query }: ProxiedRequest) => method === 'DELETE' && query.get('dir') === 'true';

const use = (locks: LockManager, name: string): Promise<void> => locks.request(name, async () => {});

/** Waits until the batch of removals that is due has ended: only then is the next one scheduled, if there is one. */
const untilScheduled = (clock: ManualClock) =>
  until(
    () => clock.outstanding,
    (timers) => timers === 1,
  );

test('the directory of a lock is removed some time after its last use, and those above it that are then empty', async () => {
  const { clock, locks } = useLocks();
  const parent = freshName();
  await use(locks, `${parent}/customer-7/invoice`);
  clock.advance(14 * SECOND);
  expect(await exists(`${parent}/customer-7/invoice`)).toBe(true);
  for (const name of [`${parent}/customer-7/invoice`, `${parent}/customer-7`, parent]) {
    await untilScheduled(clock);
    clock.advance(LONG_UNUSED);
    await untilGone(name);
  }
  expect((await raw('GET', '/_locks')).status).toBe(200);
});

test('a directory above that another lock uses stays', async () => {
  const { clock, locks } = useLocks();
  const parent = freshName();
  const other = await raw('POST', `/_locks/${parent}/used`, { value: 'python', ttl: '60' });
  await use(locks, `${parent}/unused`);
  clock.advance(LONG_UNUSED);
  await untilGone(`${parent}/unused`);
  await untilScheduled(clock);
  clock.advance(LONG_UNUSED);
  await until(
    () => clock.outstanding,
    (timers) => timers === 0,
  );
  expect((await raw('GET', other.body.node.key)).status).toBe(200);
});

test('a lock that others wait for or hold keeps its directory, and its queue', async () => {
  const { clock, locks } = useLocks();
  const name = freshName();
  await locks.request(name, async () => {
    await raw('POST', `/_locks/${name}`, { value: 'python', ttl: '60' });
  });
  clock.advance(LONG_UNUSED);
  await until(
    () => clock.outstanding,
    (timers) => timers === 0,
  );
  expect((await queueOn(name)).map(({ value }) => value)).toEqual(['python']);
});

test('a lock in use again and again costs no further requests', async () => {
  const proxy = await useProxy();
  const { clock, locks } = useLocks({ endpoints: proxy.url });
  const name = freshName();
  await use(locks, name);
  const before = proxy.requests.length;
  for (let cycle = 0; cycle < 20; cycle++) {
    await use(locks, name);
    clock.advance(10 * SECOND);
  }
  expect(proxy.requests.length - before).toBe(20 * 3);
});

test('many directories are read and removed at a bounded rate, few at a time', async () => {
  const proxy = await useProxy();
  const { clock, unused } = useLocks({ endpoints: proxy.url });
  const names = Array.from({ length: 400 }, freshName);
  for (const name of names) unused.add(`/_locks/${name}`);
  let most = 0;
  proxy.intercept(() => {
    most = Math.max(most, proxy.open.size);
    return undefined;
  });
  const reads = () => proxy.requests.filter(({ method }) => method === 'GET').length;
  clock.advance(14 * SECOND);
  expect(reads()).toBe(0);
  for (const expected of [120, 240, 360, 400]) {
    clock.advance(SECOND);
    await until(reads, (count) => count === expected);
    if (expected < 400) await untilScheduled(clock);
  }
  expect(most).toBeLessThanOrEqual(4);
});

test('an outage delays the removal', async () => {
  const proxy = await useProxy();
  const { clock, locks } = useLocks({ endpoints: proxy.url, readTimeout: 1 });
  const name = freshName();
  await use(locks, name);
  const end = proxy.intercept((request) => (isRemovalOfDirectory(request) ? { refuse: true } : undefined));
  clock.advance(LONG_UNUSED);
  await until(
    () => proxy.requests.filter(isRemovalOfDirectory).length,
    (count) => count > 0,
  );
  await untilScheduled(clock);
  end();
  expect(await exists(name)).toBe(true);
  clock.advance(LONG_UNUSED);
  await untilGone(name);
});

test('the directory of an entry that is left to expire is removed after that', async () => {
  const { clock, locks } = useLocks();
  const name = freshName();
  await locks.request(name, { holdAtLeast: 40 }, async () => {});
  clock.advance(50 * SECOND);
  expect((await queueOn(name)).length).toBe(1);
  await raw('DELETE', (await queueOn(name))[0]?.key ?? '');
  clock.advance(6 * SECOND);
  await untilGone(name);
});

test('a release that could not be sent is followed by the removal of the directory', async () => {
  const proxy = await useProxy();
  const { clock, lockClient } = useLocks({ endpoints: proxy.url, readTimeout: 1 });
  const name = freshName();
  const lock = new Lock(lockClient, name);
  await lock.acquire({ lockTtl: 60 });
  const end = proxy.intercept(({ method }) => (method === 'DELETE' ? { refuse: true } : undefined));
  await lock.release().catch(() => {});
  expect(clock.outstanding).toBe(0);
  end();
  await untilQueued(name, 0);
  await untilScheduled(clock);
  clock.advance(LONG_UNUSED);
  await untilGone(name);
});

test('a closed client removes no more directories', async () => {
  const proxy = await useProxy();
  const { clock, client, locks } = useLocks({ endpoints: proxy.url });
  const name = freshName();
  await use(locks, name);
  await client.close();
  const before = proxy.requests.length;
  clock.advance(LONG_UNUSED);
  expect(clock.outstanding).toBe(0);
  expect(proxy.requests.length).toBe(before);
});

test('no entry is lost that others append while directories are removed', async () => {
  const { clock, unused } = useLocks();
  const name = freshName();
  for (let round = 0; round < 100; round++) {
    unused.add(`/_locks/${name}`);
    clock.advance(LONG_UNUSED);
    const { status, body } = await raw('POST', `/_locks/${name}`, { value: 'python', ttl: '60' });
    expect(status).toBe(201);
    expect((await raw('DELETE', body.node.key)).status).toBe(200);
  }
});

test('a file where the directory of a lock would be stays, whatever its request for the lock gets', async () => {
  const proxy = await useProxy();
  const { clock, locks, unused } = useLocks({ endpoints: proxy.url });
  const name = freshName();
  await raw('PUT', `/_locks/${name}`, { value: 'settings' });
  await expect(use(locks, name)).rejects.toBeInstanceOf(EtcdNotDir);
  expect(clock.outstanding).toBe(0);
  unused.add(`/_locks/${name}`);
  clock.advance(LONG_UNUSED);
  await until(
    () => clock.outstanding,
    (timers) => timers === 0,
  );
  expect((await raw('GET', `/_locks/${name}`)).body.node.value).toBe('settings');
  await raw('DELETE', `/_locks/${name}`);
});
