import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { startTcpProxy } from '../faults/tcp-proxy.ts';
import { freshName } from '../support/locks.ts';
import { elapsed, moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';

/** Seconds. The poll cap is a third of it, and the last answer may take an eighth of the poll cap: long enough on a busy machine. */
const TTL = 15;

function useLocks(...endpoints: readonly string[]): LockManager {
  const client = new V3Client({ endpoints, randomizeEndpoints: false });
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

test('a waiter does not wait for an answer about the holder', async () => {
  const proxy = await startTcpProxy(inject('etcd'));
  onTestFinished(() => proxy.stop());
  const name = freshName();
  const holder = await useLocks(inject('etcd')).acquire(name);
  const asksAboutHolder = ({ path }: { readonly path: string }): boolean => path.endsWith('/lease/timetolive');
  const unanswered = proxy.swallow(asksAboutHolder);
  const waiting = useLocks(proxy.url).acquire(name);
  await unanswered;
  const watched = await until(
    () => proxy.requests.findIndex(({ path }) => path.endsWith('/watch')),
    (index) => index >= 0,
  );
  // A further one would show that the watch had to wait for the answer.
  expect(proxy.requests.slice(0, watched).filter(asksAboutHolder).length).toBeLessThanOrEqual(1);
  await holder.release();
  await (await waiting).release();
});
