import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { freshName, useProxy } from '../support/locks.ts';
import { mostInASecond, recordCounts, recordRequests } from '../support/request-times.ts';

/** Requests in any second. */
const MOST = 5;

test('a member that keeps leases alive, but answers nothing else, gets at most five requests per second', async () => {
  const proxy = await useProxy();
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  // Each TTL has its own lease, with renewals of its own.
  const holds = [15, 16, 17, 18].map((ttl) => new LockManager(client, { ttl }).acquire(freshName()));
  await Promise.all(holds);
  proxy.intercept(({ path }) => (path === '/v3/lease/keepalive' ? undefined : { swallow: true }));
  const [sent, counted] = [recordRequests([proxy.url]), recordCounts()];
  await sleep(12_000);
  expect(sent.length).toBeGreaterThan(12);
  expect(counted.length).toBeGreaterThanOrEqual(sent.length);
  expect(mostInASecond(counted)).toBeLessThanOrEqual(MOST);
});
