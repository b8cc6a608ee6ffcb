import { describe, expect, test, vi } from 'vitest';
import { EtcdClusterIdChanged, EtcdLockExpired } from '../../../../src/errors.ts';
import { MemoryStore } from '../../../../src/server/store/memory.ts';
import { Store } from '../../../../src/server/store/store.ts';
import { announce } from '../../../../src/v2/locks/entry-requests.ts';
import { rejection } from '../../../support/clients.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

/** Seconds. */
const TTL = 30;

/** An entry in a store in memory, and the renewal of its ticket. */
async function setUp() {
  const keys = new MemoryStore(new Store(new ManualClock()));
  const queue = keys.store.queue('job');
  const ticket = queue.ticket('mine');
  const own = await ticket.enter(TTL, { failed: 0, keepAlive: true });
  const { key } = own ?? expect.unreachable();
  const values = async () => (await queue.read()).inOrder().map(({ value }) => value);
  return { keys, ticket, key, values, renew: () => ticket.renew({ timeout: 5 }) };
}

describe('the renewal of an entry on etcd v2', () => {
  test('reports that the key is gone, and does not create it again', async () => {
    const { keys, key, values, renew } = await setUp();
    await keys.delete(key);
    expect((await rejection(renew(), EtcdLockExpired)).message).toContain('its key is gone');
    expect(await values()).toEqual([]);
  });

  test('reports that the key was removed and created again with the same value, and leaves that key as it is', async () => {
    const { keys, key, renew } = await setUp();
    await keys.delete(key);
    const { node: created } = await keys.set(key, 'mine', { ttl: 600 });
    expect((await rejection(renew(), EtcdLockExpired)).message).toContain('re-created');
    expect((await keys.get(key)).node).toEqual(created);
  });

  test('reports that the key has another value, and leaves that key as it is', async () => {
    const { keys, key, renew } = await setUp();
    const { node: written } = await keys.set(key, 'not mine', { ttl: 600 });
    expect((await rejection(renew(), EtcdLockExpired)).message).toContain('another value');
    expect((await keys.get(key)).node).toEqual(written);
  });

  test('reports that another cluster has answered', async () => {
    const { keys, renew } = await setUp();
    const send = keys.renew.bind(keys);
    keys.renew = async (...args) => ({ ...(await send(...args)), clusterId: 'another' });
    await rejection(renew(), EtcdClusterIdChanged);
  });

  test('accepts that python-etcd has written the same value in the meantime', async () => {
    const { keys, key, renew } = await setUp();
    await keys.set(key, 'mine', { ttl: 60 });
    expect(await renew()).toMatchObject({ key, value: 'mine', granted: TTL });
    expect((await keys.get(key)).node).toMatchObject({ value: 'mine', ttl: TTL });
  });

  test('names the index of the last write in each request, so that a late request cannot undo a newer one', async () => {
    const { keys, key, renew } = await setUp();
    const { modifiedIndex: appended } = (await keys.get(key)).node;
    const sent = vi.spyOn(keys, 'renew');
    await renew();
    const { modifiedIndex: renewed } = (await keys.get(key)).node;
    await renew();
    expect(renewed).toBeGreaterThan(appended);
    for (const [call, prevIndex] of [appended, renewed].entries())
      expect(sent.mock.calls[call]).toMatchObject([key, { prevValue: 'mine', prevIndex, ttl: TTL }]);
  });

  test('counts the TTL from when the renewal was sent, also for a second one', async () => {
    const { keys, ticket, renew } = await setUp();
    const send = keys.renew.bind(keys);
    for (const sentAt of [1234, 5678]) {
      keys.renew = async (...args) => ({ ...(await send(...args)), sentAt });
      expect(await renew()).toMatchObject({ granted: TTL, sentAt });
      expect(ticket.last).toMatchObject({ granted: TTL, sentAt });
    }
  });
});

describe('the announcement of a holder with a limit', () => {
  const announced = async (change: (keys: MemoryStore, key: string) => Promise<unknown>) => {
    const { keys, values } = await setUp();
    const { node, clusterId, sentAt } = await keys.createInOrder('/_locks/job', 'limit:2:mine', { ttl: TTL });
    const { key, modifiedIndex, createdIndex } = node;
    const own = { key, value: 'limit:2:mine', rank: 1n, modifiedIndex, createdIndex, clusterId, granted: TTL, sentAt };
    await change(keys, key);
    return {
      error: await rejection(
        announce(keys, own, {}, () => {}),
        EtcdLockExpired,
      ),
      values,
    };
  };

  test('reports that the key is gone, and does not create it again', async () => {
    const { error, values } = await announced((keys, key) => keys.delete(key));
    expect(error.message).toContain('its key is gone');
    expect(await values()).toEqual(['mine']);
  });

  test('does not overwrite another value', async () => {
    const { error, values } = await announced((keys, key) => keys.set(key, 'not mine'));
    expect(error.message).toContain('another value');
    expect(await values()).toEqual(['mine', 'not mine']);
  });
});

test('an acquire that finds the own key gone does not renew it, and appends nothing by itself', async () => {
  const { keys, key, ticket, values } = await setUp();
  await keys.delete(key);
  expect(await ticket.enter(TTL, { failed: 0, keepAlive: true })).toBeUndefined();
  expect(await values()).toEqual([]);
});
