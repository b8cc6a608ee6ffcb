import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { startTcpProxy } from '../faults/tcp-proxy.ts';
import { freshName } from '../support/locks.ts';
import { elapsed, moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';

/** Seconds: the poll cap is a third of it. */
const TTL = 6;

function useLocks(...endpoints: readonly string[]): LockManager {
  const client = new V3Client({ endpoints });
  onTestFinished(() => client.close().catch(() => {}));
  return new LockManager(client, { ttl: TTL });
}

test('a waiter acquires a released lock within a poll cap although its member and the next one have fallen silent', async () => {
  const etcd = inject('etcd');
  const [first, second] = await Promise.all([startTcpProxy(etcd), startTcpProxy(etcd)]);
  onTestFinished(async () => void (await Promise.all([first.stop(), second.stop()])));
  const name = freshName();
  const holder = await useLocks(etcd).acquire(name);
  const waiting = useLocks(first.url, second.url, etcd).acquire(name);
  await until(
    () => first.requests.some(({ path, answer }) => path.endsWith('/watch') && answer !== undefined),
    (watching) => watching,
  );
  for (const proxy of [first, second]) proxy.blackHole('both');
  const released = moment();
  await holder.release();
  const held = await waiting;
  expect(elapsed(released) / 1000).toBeLessThanOrEqual(TTL / 3);
  await held.release();
});
