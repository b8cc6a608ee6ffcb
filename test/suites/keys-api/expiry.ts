import { describe, expect } from 'vitest';
import { EtcdKeyNotFound } from '../../../src/errors.ts';
import type { KeysApi, Snapshot } from '../../../src/v2/keys-api.ts';
import { elapsed, type Moment, moment } from '../../support/stalls/stalls.mjs';
import { until } from '../../support/until.ts';
import { expectMissing, type StoreTest, untilExpiry, watching } from './store.ts';

/** Milliseconds for which an expired key may remain. etcd checks every 500 ms, and may be busy. */
const LATE = 1500;
/** Seconds: long enough for the next request to come before the expiry on a busy machine. */
const SOON = 4;
/** The store's clock counts whole milliseconds, so that it can be ahead by one. */
const MILLISECOND = 1;

/** Reads until the key is gone. Resolves to a time when the key surely existed, and the first time it was missing. */
async function lifeOf(keys: KeysApi, key: string): Promise<{ readonly there: Moment; readonly gone: number }> {
  let there = moment();
  let asked = there;
  await until(
    () => {
      asked = moment();
      return keys.get(key).catch((error: unknown) => {
        if (!(error instanceof EtcdKeyNotFound)) throw error;
        return undefined;
      });
    },
    (snapshot: Snapshot | undefined) => {
      if (snapshot) there = asked;
      return snapshot === undefined;
    },
    { every: 5 },
  );
  return { there, gone: performance.now() };
}

export function expiry(test: StoreTest): void {
  describe.concurrent('expiry', () => {
    test.for([1, 2])(
      'of a file with a TTL of %d s happens soon after that time, never before',
      async (ttl, { keys, dir }) => {
        const { sentAt } = await keys.set(`${dir}/f`, 'v', { ttl });
        const answered = moment();
        const { there, gone } = await lifeOf(keys, `${dir}/f`);
        expect(gone).toBeGreaterThanOrEqual(sentAt + ttl * 1000);
        expect(elapsed(answered, there)).toBeLessThan(ttl * 1000 + LATE);
      },
    );

    test('of a directory happens at its TTL, and removes everything in it', async ({ keys, dir }) => {
      const { sentAt } = await keys.set(`${dir}/d`, undefined, { dir: true, ttl: 1 });
      const answered = moment();
      await keys.set(`${dir}/d/a/f`, 'v');
      await keys.set(`${dir}/d/longer`, 'v', { ttl: 60 });
      const { there, gone } = await lifeOf(keys, `${dir}/d/a/f`);
      expect(gone).toBeGreaterThanOrEqual(sentAt + 1000);
      expect(elapsed(answered, there)).toBeLessThan(1000 + LATE);
      for (const name of ['d', 'd/a', 'd/longer']) await expectMissing(keys, `${dir}/${name}`);
      expect((await keys.get(dir)).node.nodes).toEqual([]);
    });

    test('of a file created in order happens at its TTL', async ({ keys, dir }) => {
      const { node, sentAt } = await keys.createInOrder(dir, 'v', { ttl: 1 });
      const { gone } = await lifeOf(keys, node.key);
      expect(gone).toBeGreaterThanOrEqual(sentAt + 1000);
      const next = await keys.createInOrder(dir, 'v');
      expect(next.node.key > node.key).toBe(true);
    });

    test('is an event with its own index', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: SOON });
      const { event } = await watching(keys, `${dir}/f`);
      const expired = await event;
      expect(expired).toMatchObject({
        action: 'expire',
        node: { key: `${dir}/f`, createdIndex: node.createdIndex },
        prevNode: { value: 'v', modifiedIndex: node.modifiedIndex, expiration: node.expiration },
      });
      expect(expired?.node).not.toHaveProperty('value');
      expect(expired?.index).toBe(expired?.node.modifiedIndex);
      expect(expired?.index).toBeGreaterThan(node.modifiedIndex);
      expect((await keys.get(dir)).index).toBeGreaterThanOrEqual(expired?.index ?? Number.NaN);
      expect(await keys.watch(`${dir}/f`, { after: node.modifiedIndex })).toMatchObject({
        action: 'expire',
        node: expired?.node,
      });
    });

    test('of a directory is one event, which also notifies watches of keys in it', async ({ keys, dir }) => {
      await keys.set(`${dir}/d`, undefined, { dir: true, ttl: SOON });
      const { node } = await keys.set(`${dir}/d/f`, 'v');
      const { event } = await watching(keys, `${dir}/d/f`);
      const expired = await event;
      expect(expired).toMatchObject({
        action: 'expire',
        node: { key: `${dir}/d`, dir: true },
        prevNode: { key: `${dir}/d` },
      });
      const later = await keys.set(`${dir}/other`, 'v');
      const first = await keys.watch(dir, { after: node.modifiedIndex, recursive: true });
      const second = await keys.watch(dir, { after: first?.index, recursive: true });
      expect([first?.index, second?.index]).toEqual([expired?.index, later.node.modifiedIndex]);
    });

    test('shows in the ttl of a read, which counts down', async ({ keys, dir }) => {
      const { node, sentAt } = await keys.set(`${dir}/f`, 'v', { ttl: 10 });
      expect(node.ttl).toBe(10);
      const near = await until(
        () => keys.get(`${dir}/f`),
        (snapshot) => snapshot.node.ttl !== 10,
      );
      const left = 10 - (performance.now() - sentAt + MILLISECOND) / 1000;
      expect(near.node).toEqual({ ...node, ttl: expect.toSatisfy((ttl: number) => ttl >= left && ttl < 10) });
    });

    test('with a TTL of 0 happens at the next check', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 0 });
      const answered = moment();
      expect(node).toHaveProperty('expiration');
      expect(node).not.toHaveProperty('ttl');
      expect(await keys.watch(`${dir}/f`, { after: node.modifiedIndex })).toMatchObject({ action: 'expire' });
      expect(elapsed(answered)).toBeLessThan(LATE);
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
    ])('does not happen at the original time for a file that %s', async ([, change], { keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: SOON });
      await change(keys, `${dir}/f`, node.modifiedIndex);
      await untilExpiry(keys, dir, SOON);
      expect((await keys.get(`${dir}/f`)).node.value).toBe('v');
    });

    test('does not happen at the original time for a directory that was updated', async ({ keys, dir }) => {
      await keys.set(`${dir}/d`, undefined, { dir: true, ttl: SOON });
      await keys.set(`${dir}/d/f`, 'v');
      await keys.set(`${dir}/d`, undefined, { dir: true, prevExist: true, ttl: 60 });
      await untilExpiry(keys, dir, SOON);
      expect((await keys.get(`${dir}/d/f`)).node.value).toBe('v');
    });

    test('happens earlier for a file whose TTL was shortened', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      const { modifiedIndex: prevIndex } = node;
      const renewed = await keys.renew(`${dir}/f`, { prevValue: 'v', prevIndex, ttl: 1 });
      const event = await keys.watch(`${dir}/f`, { after: renewed.node.modifiedIndex });
      expect(event).toMatchObject({ action: 'expire', prevNode: { value: 'v' } });
    });

    test('does not affect a new file of the same name', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v', { ttl: SOON });
      await keys.delete(`${dir}/f`);
      await keys.set(`${dir}/f`, 'w');
      await untilExpiry(keys, dir, SOON);
      expect((await keys.get(`${dir}/f`)).node.value).toBe('w');
    });
  });
}
