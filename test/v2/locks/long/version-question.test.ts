import { describe, expect, test } from 'vitest';
import { LockManager } from '../../../../src/index.ts';
import { gate } from '../../../support/gate.ts';
import { freshName, queueOn, useClient, useProxy } from '../../../support/locks.ts';
import type { Action, ProxiedRequest } from '../../../support/proxy.ts';
import { until } from '../../../support/until.ts';

const isVersionRequest = ({ path }: ProxiedRequest): boolean => path === '/version';
const isRenewal = ({ method, status }: ProxiedRequest): boolean => method === 'PUT' && status === 200;
const isRenewalOf =
  (key: string) =>
  (request: ProxiedRequest): boolean =>
    isRenewal(request) && request.path.endsWith(key);

describe('a hold outlives its TTL behind a proxy that', () => {
  test.each<[string, Action]>([
    ['answers 503 for all paths but /v2', { late: new Promise(() => {}), status: 503, body: {} }],
    ['closes the connection for all paths but /v2', { refuse: true }],
    ['is silent for all paths but /v2', { silent: true }],
  ])('%s', async (_, action) => {
    const proxy = await useProxy();
    proxy.intercept((request) => (request.path.startsWith('/v2/') ? undefined : action));
    const name = freshName();
    const held = await new LockManager(useClient({ endpoints: proxy.url }), { ttl: 9 }).acquire(name);
    await until(
      () => proxy.requests.filter(isRenewal).length,
      (renewals) => renewals >= 4 || held.signal.aborted,
    );
    held.assertHeld();
    expect(await queueOn(name)).toMatchObject([{ key: held.key }]);
    expect(proxy.requests.some(isVersionRequest)).toBe(true);
    await held.release();
  });
});

test('a hold with a short TTL is renewed through a working member while a renewal of a long one waits for a silent member', async () => {
  const [refusing, silent, working] = [await useProxy(), await useProxy(), await useProxy()];
  const client = useClient({ endpoints: [refusing, silent, working].map(({ url }) => url) });
  const names = [freshName(), freshName()] as const;
  const long = await new LockManager(client, { ttl: 60 }).acquire(names[0]);
  const short = await new LockManager(client, { ttl: 10 }).acquire(names[1]);
  silent.intercept(() => ({ silent: true }));
  const stopRefusing = refusing.intercept(() => ({ refuse: true }));
  const { opened, open } = gate();
  setTimeout(() => {
    stopRefusing();
    open();
  }, 2200);
  // Imitates a renewal of the long hold that is due now. It waits for the silent member until its timeout.
  const { node } = await client.get(long.key).catch(() => client.get(long.key));
  const renewal = client.renew(long.key, {
    prevValue: node.value ?? '',
    prevIndex: node.modifiedIndex,
    ttl: 60,
    attemptTimeout: 10,
  });
  await opened;
  await renewal;
  const proxies = [refusing, silent, working];
  const renewals = () => proxies.flatMap(({ requests }) => requests.filter(isRenewalOf(short.key))).length;
  await until(renewals, (count) => count >= 4 || short.signal.aborted, { timeout: 25_000 });
  short.assertHeld();
  expect(await queueOn(names[1])).toMatchObject([{ key: short.key }]);
  await short.release();
  await long.release();
});
