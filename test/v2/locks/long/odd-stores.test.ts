import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { EtcdClient, LockManager } from '../../../../src/index.ts';
import { freshName, queueOn, raw, useClient, useProxy } from '../../../support/locks.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { serveOpenly } from '../../../support/open-server.ts';
import { type ProxiedRequest, startProxy } from '../../../support/proxy.ts';
import { elapsed, moment } from '../../../support/stalls/stalls.mjs';
import { until } from '../../../support/until.ts';

const isRenewal = ({ method }: ProxiedRequest): boolean => method === 'PUT';

test('a foreign key with the name of the next entry blocks appends only until the next write to the store', async () => {
  const etcd = await serveOpenly();
  const proxy = await useProxy(etcd.url);
  const name = freshName();
  const foreignKey = `/_locks/${name}/${String(etcd.store.index + 2).padStart(20, '0')}`;
  await raw('PUT', foreignKey, { value: 'foreign', ttl: '4' }, etcd.url);
  const refused = proxy.next(({ method, status }) => method === 'POST' && status === 412, 'answered');
  const acquired = new LockManager(useClient({ endpoints: proxy.url })).acquire(name, { timeout: 20 });
  await refused;
  await raw('PUT', '/elsewhere', { value: 'anything' }, etcd.url);
  const held = await acquired;
  expect(held.key > foreignKey).toBe(true);
  await held.release();
});

test('the key of a lost hold is removed even if a late renewal made it outlive its TTL', async () => {
  // Nothing expires here, as in a store that was stopped and handles waiting requests before it expires keys.
  const etcd = await serveOpenly(new ManualClock());
  const proxy = await useProxy(etcd.url);
  const name = freshName();
  const client = useClient({ endpoints: proxy.url });
  const held = await new LockManager(client, { ttl: 1 }).acquire(name);
  const restore = proxy.intercept(() => ({ refuse: true }));
  const lost = new Promise((resolve) => held.signal.addEventListener('abort', resolve, { once: true }));
  await lost;
  await held.release();
  const again = proxy.requests.length;
  await until(
    () => proxy.requests.slice(again).filter(({ method }) => method === 'DELETE').length,
    (removals) => removals >= 3,
    { timeout: 20_000 },
  );
  restore();
  await until(
    () => queueOn(name, etcd.url),
    (queue) => queue.length === 0,
    { timeout: 20_000 },
  );
  expect(proxy.requests.some(isRenewal)).toBe(true);
});

test.concurrent.for([6, 9, 30])(
  'a lock with a TTL of %s seconds is acquired, renewed and released if each answer takes more than two seconds',
  async (ttl, { onTestFinished }) => {
    const proxy = await startProxy(inject('etcd'));
    onTestFinished(() => proxy.stop());
    proxy.intercept(() => ({ hold: sleep(2200) }));
    const client = new EtcdClient({ endpoints: proxy.url });
    onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
    const name = freshName();
    const locks = new LockManager(client, { ttl, timeout: 60 });
    const renewed = () => proxy.requests.filter((request) => isRenewal(request) && request.status === 200).length;
    for (let isTooBusy = true; isTooBusy; ) {
      const from = moment();
      const held = await locks.acquire(name);
      const before = renewed();
      await until(renewed, (count) => count >= before + 2 || held.signal.aborted);
      const to = moment();
      // With a TTL of 6 s, all but a second is needed for the slow answers.
      isTooBusy = held.signal.aborted && to.at - from.at - elapsed(from, to) > 500;
      if (!isTooBusy) held.assertHeld();
      await held.release();
    }
    await until(
      () => queueOn(name),
      (queue) => queue.length === 0,
      { timeout: 20_000 },
    );
  },
);
