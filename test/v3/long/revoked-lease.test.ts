import { describe, expect, onTestFinished, test } from 'vitest';
import { EtcdLockLost } from '../../../src/errors.ts';
import type { Held } from '../../../src/manager/held.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { V3Client } from '../../../src/v3/client.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName, useProxy } from '../../support/locks.ts';
import { until } from '../../support/until.ts';
import { isWatch } from '../../support/watched-keys.ts';

/** Seconds: a renewal is due after a third of it. */
const TTL = 3;

/** Locks of a client that has an identity, behind a proxy. */
async function setUp(identity = freshName()) {
  const proxy = await useProxy();
  const client = new V3Client({ endpoints: proxy.url });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return { proxy, locks: new LockManager(client, { ttl: TTL, identity }) };
}

/** Revokes the lease of a key, as a leader may do that was stopped for a while. */
async function revoke(key: string): Promise<void> {
  const { kvs } = await gateway('/kv/range', { key: base64(key) });
  await gateway('/lease/revoke', { ID: kvs?.[0]?.lease ?? '' });
}

const lossOf = async ({ signal }: Pick<Held, 'signal'>): Promise<EtcdLockLost> => {
  await until(() => signal.aborted, Boolean);
  return signal.reason;
};

const untilQueued = (name: string, count: number) =>
  until(
    () => entriesBelow(`/_locks/${name}/`),
    (entries) => entries.length === count,
  );

describe('etcd revokes the lease of a live entry with an identity: that is not taken for a clash of identities', () => {
  test.each([
    ['which its watch notices', false],
    ['which its next renewal notices', true],
  ])('by a holder, %s', async (_, isUnwatched) => {
    const { proxy, locks } = await setUp();
    if (isUnwatched) proxy.intercept((request) => (isWatch(request) ? { silent: true } : undefined));
    const begins = proxy.next(isWatch, 'arrived');
    const held = await locks.acquire(freshName());
    await begins;
    await revoke(held.key);
    const loss = await lossOf(held);
    expect(loss).toBeInstanceOf(EtcdLockLost);
    expect(loss.message).toContain('its lease has ended');
    expect(loss.message).not.toContain('identity');
  });

  test('by a waiter, which queues up again and gets the lock', async () => {
    const name = freshName();
    const [holder, { locks }] = [await setUp(), await setUp()];
    const held = await holder.locks.acquire(name);
    const waiting = locks.acquire(name);
    const [, own] = await untilQueued(name, 2);
    await revoke(own?.key ?? '');
    await until(
      () => entriesBelow(`/_locks/${name}/`),
      (entries) => entries.length === 2 && entries[1]?.key !== own?.key,
    );
    await held.release();
    await (await waiting).release();
  });

  test('by a candidate, which campaigns again', async () => {
    const { locks } = await setUp();
    const tokens: bigint[] = [];
    for await (const term of locks.elect(freshName()).campaign()) {
      tokens.push(term.fencingToken);
      if (tokens.length === 2) break;
      await revoke(term.key);
      await until(() => term.signal.aborted, Boolean);
    }
    expect(tokens).toHaveLength(2);
  });
});

test('the removal of a key alone may be a clash, also if the lease cannot be read', async () => {
  const { proxy, locks } = await setUp('pod-1');
  proxy.intercept(({ path }) => (path.endsWith('/lease/timetolive') ? { silent: true } : undefined));
  const held = await locks.acquire(freshName());
  await gateway('/kv/deleterange', { key: base64(held.key) });
  expect((await lossOf(held)).message).toContain('its key is gone; does another process have the identity "pod-1"?');
});
