import { expect, inject, onTestFinished, test } from 'vitest';
import { startPython } from '../../compat/python.ts';
import { keepLive } from '../../src/cli/live/feed.ts';
import { type LiveLock, LiveModel } from '../../src/cli/live/model.ts';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { lockByEtcdctl } from '../support/etcdctl.mjs';
import { freshName, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { useLockName } from '../support/queues.ts';
import { until } from '../support/until.ts';

type Api = 'v2' | 'v3';
const APIS = ['v2', 'v3'] as const;

const isListing = ({ method, path, query }: ProxiedRequest): boolean =>
  method === 'GET' ? query.has('recursive') && !query.has('wait') : path.endsWith('/kv/range');

/** Follows all locks with a prefix. Returns the model. */
function useLive(api: Api, prefix: string, { url = inject('etcd'), shown = '', isSeen = false } = {}): LiveModel {
  const model = new LiveModel({ api, prefix });
  const client = new EtcdClient({ endpoints: url, api });
  const end = new AbortController();
  const ended = keepLive(client.surveyor, model, {
    prefix,
    signal: end.signal,
    onChange: () => {},
    shown: () => (shown === '' ? [] : [shown]),
    isSeen: () => isSeen,
  });
  ended.catch(() => {});
  onTestFinished(async () => {
    end.abort();
    await ended.catch(() => {});
    await client.close();
  });
  return model;
}

function useLocks(api: Api): LockManager {
  const client = new EtcdClient({ endpoints: inject('etcd'), api });
  onTestFinished(() => client.close());
  return new LockManager(client, { ttl: 30, label: 'web-1:17' });
}

const kindsIn = (model: LiveModel): string[] => model.history.map(({ kind }) => kind);
const lockIn = (model: LiveModel, name: string): LiveLock | undefined => model.locks.find((lock) => lock.name === name);

test.each(APIS)(
  'shows who acquires, waits for and releases a lock on %s within a second, and since when',
  async (api) => {
    const name = useLockName();
    const model = useLive(api, name);
    await until(
      () => model.seenAt,
      (at) => at !== undefined,
    );
    const [locks, others] = [useLocks(api), useLocks(api)];
    const before = Date.now();
    const held = await locks.acquire(name);
    const waiting = others.acquire(name);
    const lock = await until(
      () => lockIn(model, name),
      (found) => found?.waiters.length === 1,
    );
    expect(lock?.holders).toMatchObject([{ entry: { key: held.key, label: 'web-1:17' }, kind: 'this package' }]);
    expect(lock?.holders[0]?.heldAt).toBeGreaterThanOrEqual(before);
    expect(lock?.waiters[0]?.queuedAt).toBeGreaterThanOrEqual(before);
    const releasedAt = Date.now();
    await held.release();
    const next = await waiting;
    const passed = await until(
      () => lockIn(model, name),
      (found) => found?.holders[0]?.entry.uuid === next.uuid,
    );
    expect((passed?.holders[0]?.heldAt ?? 0) - releasedAt).toBeLessThan(1000);
    await next.release();
    await until(
      () => model.locks.length,
      (count) => count === 0,
    );
    expect(kindsIn(model)).toEqual(['queued', 'acquired', 'queued', 'released', 'acquired', 'released']);
  },
);

test('shows entries of python-etcd on v2, and of etcdctl on v3, as such', async () => {
  const name = useLockName();
  const [v2, v3] = [useLive('v2', name), useLive('v3', name)];
  const python = await startPython(inject('etcd'));
  onTestFinished(() => python.kill());
  await (await python.lock(name)).hold({ lockTtl: 600 });
  const etcdctl = lockByEtcdctl(`/_locks/${name}`, { endpoints: [inject('etcd')], ttl: 30 });
  onTestFinished(() => etcdctl.kill());
  const kindIn = (model: LiveModel) =>
    until(
      () => lockIn(model, name)?.holders[0]?.kind,
      (kind) => kind !== undefined,
    );
  expect([await kindIn(v2), await kindIn(v3)]).toEqual(['python-etcd', 'Go']);
});

test.each(APIS)('lists all queues of %s once, and not again for a change', async (api) => {
  const name = useLockName();
  const proxy = await useProxy();
  let listings = 0;
  proxy.intercept((request) => {
    if (isListing(request)) listings += 1;
    return undefined;
  });
  const model = useLive(api, name, { url: proxy.url });
  await until(
    () => model.seenAt,
    (at) => at !== undefined,
  );
  const locks = useLocks(api);
  for (let round = 0; round < 5; round += 1) await (await locks.acquire(name)).release();
  await until(
    () => kindsIn(model).filter((kind) => kind === 'released').length,
    (count) => count === 5,
  );
  expect(listings).toBe(1);
});

test.each(APIS)('says since when etcd was not seen, and shows on %s what has changed in the outage', async (api) => {
  const name = useLockName();
  const proxy = await useProxy();
  const held = await useLocks(api).acquire(name);
  const model = useLive(api, name, { url: proxy.url, shown: name });
  await until(
    () => model.locks.length,
    (count) => count === 1,
  );
  const recover = proxy.intercept(() => ({ refuse: true }));
  const outage = await until(
    () => model.outage,
    (found) => found !== undefined,
  );
  expect(outage?.since).toBe(model.seenAt);
  expect(lockIn(model, name)?.holders[0]?.entry.key).toBe(held.key);
  await held.release();
  recover();
  await until(
    () => model.locks.length,
    (count) => count === 0,
  );
  expect(model.outage).toBeUndefined();
  expect(kindsIn(model)).toEqual(['gone']);
});

test.each(APIS)(
  'notices within ten seconds on %s that etcd has fallen silent, if somebody sees it and no lock is shown',
  async (api) => {
    const proxy = await useProxy();
    const model = useLive(api, freshName(), { url: proxy.url, isSeen: true });
    await until(
      () => model.seenAt,
      (at) => at !== undefined,
    );
    // The watch is open, and stays so.
    const since = performance.now();
    proxy.intercept(() => ({ refuse: true }));
    await until(
      () => model.outage,
      (found) => found !== undefined,
    );
    expect(performance.now() - since).toBeLessThan(10_000);
  },
);

test.each(APIS)('reads the TTLs of the locks that are shown on %s, and sees their renewals', async (api) => {
  const [one, other] = [useLockName(), useLockName()];
  const client = new EtcdClient({ endpoints: inject('etcd'), api });
  onTestFinished(() => client.close());
  const locks = new LockManager(client, { ttl: 6 });
  const model = useLive(api, 'test-', { shown: one });
  const held = [await locks.acquire(one), await locks.acquire(other)];
  const renewed = await until(
    () => lockIn(model, one)?.holders[0],
    (holder) => holder?.renewedAt !== undefined,
  );
  expect(renewed?.ttl?.left).toBeLessThanOrEqual(6);
  expect(lockIn(model, other)?.holders[0]?.renewedAt).toBeUndefined();
  for (const each of held) await each.release();
});

test('fails at once if etcd cannot be read at the start', async () => {
  const client = new EtcdClient({ endpoints: 'http://127.0.0.1:1' });
  onTestFinished(() => client.close());
  const options = { prefix: freshName(), signal: new AbortController().signal, onChange: () => {} };
  const model = new LiveModel({ api: 'v2', prefix: '' });
  await expect(keepLive(client.surveyor, model, options)).rejects.toThrow(/127\.0\.0\.1:1/);
});
