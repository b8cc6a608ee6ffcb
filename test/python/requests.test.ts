import { beforeEach, describe, expect, test } from 'vitest';
import { Lock } from '../../src/index.ts';
import { useBeatClock } from '../support/beat-clock.ts';
import { freshName, queueOn, untilQueued, useClient, useProxy } from '../support/locks.ts';
import { until } from '../support/until.ts';

describe('if each request is answered in time,', () => {
  const clock = useBeatClock();
  beforeEach(() => clock.pause());

  test('an uncontended acquire and release take three requests', async () => {
    const proxy = await useProxy();
    const lock = new Lock(useClient({ endpoints: proxy.url }), freshName());
    for (let cycle = 1; cycle <= 3; cycle += 1) {
      await lock.acquire();
      await lock.release();
      expect(proxy.requests.map(({ method }) => method)).toEqual(Array(cycle).fill(['POST', 'GET', 'DELETE']).flat());
    }
  });

  test('a waiter needs one append, one watch and two listings to get the lock', async () => {
    const proxy = await useProxy();
    const name = freshName();
    const owner = new Lock(useClient(), name);
    await owner.acquire();
    const waiter = new Lock(useClient({ endpoints: proxy.url }), name);
    const watching = proxy.next(({ query }) => query.get('wait') === 'true', 'headers');
    const waiting = waiter.acquire();
    await watching;
    await owner.release();
    await waiting;
    const requests = proxy.requests.map(({ method, query }) => (query.get('wait') ? 'WATCH' : method));
    expect(requests).toEqual(['POST', 'GET', 'WATCH', 'GET']);
  });
});

test('a hundred waiters of one client do not delay a release by the same client', async () => {
  const name = freshName();
  const client = useClient();
  const owner = new Lock(client, name);
  await owner.acquire();
  const waiters = Array.from({ length: 100 }, () => new Lock(client, name));
  const order: number[] = [];
  const done = waiters.map(async (lock, i) => {
    await lock.acquire();
    order.push(i);
    await lock.release();
  });
  await untilQueued(name, 101);
  await owner.release();
  await Promise.all(done);
  expect(order).toHaveLength(100);
  expect(await queueOn(name)).toEqual([]);
});

test('a waiter whose poll gets no answer reads the queue by quorum, and gets the lock', async () => {
  const proxy = await useProxy();
  const name = freshName();
  const owner = new Lock(useClient(), name);
  await owner.acquire();
  const waiter = new Lock(useClient({ endpoints: proxy.url }), name);
  // The long poll gets no answer, as on a half-open connection.
  proxy.intercept(({ query }) => (query.get('wait') ? { silent: true } : undefined));
  const waiting = waiter.acquire({ lockTtl: 3, keepAlive: true });
  await until(
    () => proxy.requests.filter(({ query }) => query.get('quorum') === 'true'),
    (reads) => reads.length >= 1,
  );
  await owner.release();
  expect(await waiting).toBe(true);
  await waiter.release();
});

test('many simultaneous calls on one client cause no memory-leak warning', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => warnings.push(warning);
  process.on('warning', onWarning);
  const client = useClient();
  await Promise.all(Array.from({ length: 50 }, () => client.get('/')));
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      const lock = new Lock(client, freshName());
      await lock.acquire({ keepAlive: true });
      await Promise.all(Array.from({ length: 20 }, () => lock.acquire()));
      await lock.release();
    }),
  );
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});
