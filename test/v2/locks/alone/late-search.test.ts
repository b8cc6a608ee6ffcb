import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { EtcdInsufficientPermissions } from '../../../../src/errors.ts';
import { Lock } from '../../../../src/python/lock.ts';
import { SEARCH_APPEND_FOR } from '../../../../src/recipe/entries/timing.ts';
import { gate } from '../../../support/gate.ts';
import { freshName, raw, rejection, untilQueued, useClient, useProxy } from '../../../support/locks.ts';
import { first } from '../../../support/lost-requests.ts';
import type { ProxiedRequest } from '../../../support/proxy.ts';
import { until } from '../../../support/until.ts';

// The two minutes are too long for a test.
vi.mock(import('../../../../src/recipe/entries/timing.ts'), async (original) => ({
  ...(await original()),
  SEARCH_APPEND_FOR: 5,
}));

const isAppend = ({ method }: ProxiedRequest): boolean => method === 'POST';
const isRemoval = ({ method }: ProxiedRequest): boolean => method === 'DELETE';
const isRead = ({ method }: ProxiedRequest): boolean => method === 'GET';

test('an append that is carried out after a long outage is found and removed', async () => {
  const [proxy, name, late] = [await useProxy(), freshName(), gate()];
  const client = useClient({ endpoints: proxy.url });
  await client.version();
  proxy.intercept(first(1, isAppend, { hold: late.opened, cut: true }));
  const arrived = proxy.next(isAppend, 'arrived');
  const failed = rejection(new Lock(client, name).acquire({ lockTtl: 600, timeout: 1 }));
  const append = await arrived;
  const allow = proxy.intercept(() => ({ refuse: true }));
  await failed;
  const since = performance.now();
  await until(
    () => performance.now() - since,
    (milliseconds) => milliseconds > SEARCH_APPEND_FOR * 1000,
  );
  const [read, answered] = [proxy.next(isRead, 'answered'), proxy.next((request) => request === append, 'answered')];
  allow();
  await read;
  late.open();
  await answered;
  expect(await untilQueued(name, 0)).toEqual([]);
});

test('an append that is never carried out is forgotten after that time, even if the lock is acquired again and again', async () => {
  const proxy = await useProxy();
  const lock = new Lock(useClient({ endpoints: proxy.url }), freshName());
  proxy.intercept(first(1, isAppend, { refuse: true }));
  const searches = async (): Promise<number> => {
    const before = proxy.requests.length;
    await lock.acquire({ lockTtl: 60 });
    await lock.release();
    return proxy.requests.slice(before).filter(({ query }) => query.get('quorum') === 'true').length;
  };
  expect(await searches()).toBeGreaterThan(0);
  await until(searches, (count) => count === 0);
});

test('an adopted entry that may not be written is not removed any more once it has expired', async () => {
  const [proxy, name, uuid] = [await useProxy(), freshName(), randomUUID()];
  const body = { errorCode: 110, message: 'The request requires user authentication', cause: '', index: 0 };
  const isWrite = (request: ProxiedRequest): boolean => request.method === 'PUT' || isRemoval(request);
  proxy.intercept((request) => (isWrite(request) ? { late: new Promise(() => {}), status: 401, body } : undefined));
  await raw('POST', `/_locks/${name}`, { value: uuid, ttl: '6' });
  const client = useClient({ endpoints: proxy.url });
  const refused = proxy.next(isRemoval, 'arrived');
  const failed = rejection(new Lock(client, name, { uuid }).acquire());
  await refused;
  expect(await failed).toBeInstanceOf(EtcdInsufficientPermissions);
  await untilQueued(name, 0);
  const removals = () => proxy.requests.filter(isRemoval).length;
  // Pauses between two removals end after two seconds.
  await until(
    async () => {
      const before = removals();
      await sleep(2500);
      return removals() - before;
    },
    (count) => count === 0,
  );
});
