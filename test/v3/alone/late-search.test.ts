import { expect, onTestFinished, test, vi } from 'vitest';
import { LockManager } from '../../../src/manager/manager.ts';
import { SEARCH_APPEND_FOR } from '../../../src/recipe/entries/timing.ts';
import { V3Client } from '../../../src/v3/client.ts';
import { gate } from '../../support/gate.ts';
import { entriesBelow } from '../../support/gateway.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

// The two minutes are too long for a test.
vi.mock(import('../../../src/recipe/entries/timing.ts'), async (original) => ({
  ...(await original()),
  SEARCH_APPEND_FOR: 5,
}));

const isAppend = ({ path, body }: ProxiedRequest): boolean => path.endsWith('/kv/txn') && body.includes('request_put');
const isRead = ({ path }: ProxiedRequest): boolean => path.endsWith('/kv/range');

test('an append that is carried out during a long outage is found and removed after it', async () => {
  const [proxy, name, late] = [await useProxy(), freshName(), gate()];
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close().catch(() => {}));
  const locks = new LockManager(client, { ttl: 600 });
  // Keeps the lease alive.
  const other = await locks.acquire(freshName());
  proxy.intercept((request) => (isAppend(request) ? { hold: late.opened, cut: true } : undefined));
  const searched = proxy.next(isRead, 'answered');
  await rejection(locks.acquire(name, { timeout: 1 }));
  await searched;
  const allow = proxy.intercept(() => ({ refuse: true }));
  const since = performance.now();
  await until(
    () => performance.now() - since,
    (milliseconds) => milliseconds > SEARCH_APPEND_FOR * 1000,
  );
  const answered = proxy.next(isAppend, 'answered');
  late.open();
  await answered;
  expect(await entriesBelow(`/_locks/${name}/`)).toHaveLength(1);
  allow();
  await until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 0,
  );
  expect(await other.release()).toBe(true);
});
