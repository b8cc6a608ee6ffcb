import { describe, expect } from 'vitest';
import { EtcdKeyNotFound } from '../../../src/errors.ts';
import type { KeysApi, Snapshot } from '../../../src/v2/keys-api.ts';
import { until } from '../../support/until.ts';
import { expectMissing, type StoreTest, untilExpiry, watching } from './store.ts';

/** Milliseconds an expired key may still be there: etcd looks every 500 ms, and has other things to do. */
const LATE = 1500;

/** Reads until the key is gone. Resolves to when it was surely there last, and when it was first seen to be gone. */
async function lifeOf(keys: KeysApi, key: string): Promise<{ readonly there: number; readonly gone: number }> {
  let there = Number.NaN;
  await until(
    () =>
      keys.get(key).catch((error: unknown) => {
        if (!(error instanceof EtcdKeyNotFound)) throw error;
        return undefined;
      }),
    (snapshot: Snapshot | undefined) => {
      if (snapshot) there = snapshot.sentAt;
      return snapshot === undefined;
    },
    { every: 5 },
  );
  return { there, gone: performance.now() };
}

export function expiry(test: StoreTest): void {
  describe.concurrent('expiry', () => {
    test.for([1, 2])('of a file with a TTL of %d comes not before that, and soon after', async (ttl, { keys, dir }) => {
      const { sentAt } = await keys.set(`${dir}/f`, 'v', { ttl });
      const answeredAt = performance.now();
      const { there, gone } = await lifeOf(keys, `${dir}/f`);
      expect(gone).toBeGreaterThanOrEqual(sentAt + ttl * 1000);
      expect(there).toBeLessThan(answeredAt + ttl * 1000 + LATE);
    });

    test('of a directory comes in its time, and takes all that is in it', async ({ keys, dir }) => {
      const { sentAt } = await keys.set(`${dir}/d`, undefined, { dir: true, ttl: 1 });
      const answeredAt = performance.now();
      await keys.set(`${dir}/d/a/f`, 'v');
      await keys.set(`${dir}/d/longer`, 'v', { ttl: 60 });
      const { there, gone } = await lifeOf(keys, `${dir}/d/a/f`);
      expect(gone).toBeGreaterThanOrEqual(sentAt + 1000);
      expect(there).toBeLessThan(answeredAt + 1000 + LATE);
      for (const name of ['d', 'd/a', 'd/longer']) await expectMissing(keys, `${dir}/${name}`);
      expect((await keys.get(dir)).node.nodes).toEqual([]);
    });

    test('of an entry made in order comes, too', async ({ keys, dir }) => {
      const { node, sentAt } = await keys.createInOrder(dir, 'v', { ttl: 1 });
      const { gone } = await lifeOf(keys, node.key);
      expect(gone).toBeGreaterThanOrEqual(sentAt + 1000);
      const next = await keys.createInOrder(dir, 'v');
      expect(next.node.key > node.key).toBe(true);
    });

    test('is an event with an index of its own', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 1 });
      const { event } = await watching(keys, `${dir}/f`);
      const told = await event;
      expect(told).toMatchObject({
        action: 'expire',
        node: { key: `${dir}/f`, createdIndex: node.createdIndex },
        prevNode: { value: 'v', modifiedIndex: node.modifiedIndex, expiration: node.expiration },
      });
      expect(told?.node).not.toHaveProperty('value');
      expect(told?.index).toBe(told?.node.modifiedIndex);
      expect(told?.index).toBeGreaterThan(node.modifiedIndex);
      expect((await keys.get(dir)).index).toBeGreaterThanOrEqual(told?.index ?? Number.NaN);
      expect(await keys.watch(`${dir}/f`, { after: node.modifiedIndex })).toMatchObject({
        action: 'expire',
        node: told?.node,
      });
    });

    test('of a directory is one event, which wakes who watches what was in it', async ({ keys, dir }) => {
      await keys.set(`${dir}/d`, undefined, { dir: true, ttl: 1 });
      const { node } = await keys.set(`${dir}/d/f`, 'v');
      const { event } = await watching(keys, `${dir}/d/f`);
      const told = await event;
      expect(told).toMatchObject({
        action: 'expire',
        node: { key: `${dir}/d`, dir: true },
        prevNode: { key: `${dir}/d` },
      });
      const later = await keys.set(`${dir}/other`, 'v');
      const first = await keys.watch(dir, { after: node.modifiedIndex, recursive: true });
      const second = await keys.watch(dir, { after: first?.index, recursive: true });
      expect([first?.index, second?.index]).toEqual([told?.index, later.node.modifiedIndex]);
    });

    test('is near when the seconds left are few', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 2 });
      expect(node.ttl).toBe(2);
      const near = await until(
        () => keys.get(`${dir}/f`),
        (snapshot) => snapshot.node.ttl !== 2,
      );
      expect(near.node).toEqual({ ...node, ttl: 1 });
    });

    test('with a TTL of 0 comes as soon as it can', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 0 });
      const answeredAt = performance.now();
      expect(node).toHaveProperty('expiration');
      expect(node).not.toHaveProperty('ttl');
      expect(await keys.watch(`${dir}/f`, { after: node.modifiedIndex })).toMatchObject({ action: 'expire' });
      expect(performance.now()).toBeLessThan(answeredAt + LATE);
      await expectMissing(keys, `${dir}/f`);
    });

    test.for<[string, (keys: KeysApi, key: string, index: number) => Promise<unknown>]>([
      ['was renewed', (keys, key, prevIndex) => keys.renew(key, { prevValue: 'v', prevIndex, ttl: 60 })],
      [
        'lost its TTL by a renewal',
        (keys, key, prevIndex) => keys.renew(key, { prevValue: 'v', prevIndex, ttl: null }),
      ],
      ['was refreshed', (keys, key) => keys.set(key, undefined, { refresh: true, ttl: 60 })],
      ['was updated without a TTL', (keys, key) => keys.set(key, 'v', { prevExist: true, ttl: null })],
      ['was overwritten without a TTL', (keys, key) => keys.set(key, 'v')],
    ])('does not come in the time first set for a file that %s', async ([, change], { keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 1 });
      await change(keys, `${dir}/f`, node.modifiedIndex);
      await untilExpiry(keys, dir, 1);
      expect((await keys.get(`${dir}/f`)).node.value).toBe('v');
    });

    test('does not come in the time first set for a directory that was updated', async ({ keys, dir }) => {
      await keys.set(`${dir}/d`, undefined, { dir: true, ttl: 1 });
      await keys.set(`${dir}/d/f`, 'v');
      await keys.set(`${dir}/d`, undefined, { dir: true, prevExist: true, ttl: 60 });
      await untilExpiry(keys, dir, 1);
      expect((await keys.get(`${dir}/d/f`)).node.value).toBe('v');
    });

    test('comes earlier for a file whose TTL was shortened', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      const { modifiedIndex: prevIndex } = node;
      const renewed = await keys.renew(`${dir}/f`, { prevValue: 'v', prevIndex, ttl: 1 });
      const event = await keys.watch(`${dir}/f`, { after: renewed.node.modifiedIndex });
      expect(event).toMatchObject({ action: 'expire', prevNode: { value: 'v' } });
    });

    test('does not touch a file that was made anew under the same name', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v', { ttl: 1 });
      await keys.delete(`${dir}/f`);
      await keys.set(`${dir}/f`, 'w');
      await untilExpiry(keys, dir, 1);
      expect((await keys.get(`${dir}/f`)).node.value).toBe('w');
    });
  });
}
