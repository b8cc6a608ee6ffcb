import { describe, expect } from 'vitest';
import { EtcdCompareFailed, EtcdKeyNotFound } from '../../../src/errors.ts';
import { rejection } from '../../support/clients.ts';
import { expectExpiry, expectMissing, type StoreTest, watching } from './store.ts';

export function renewals(test: StoreTest): void {
  describe('renew', () => {
    test('sets a later expiry, and keeps the value and the createdIndex', async ({ keys, dir }) => {
      const { node } = await keys.createInOrder(dir, 'v', { ttl: 60 });
      const { key, createdIndex, modifiedIndex: prevIndex } = node;
      const renewed = await keys.renew(key, { prevValue: 'v', prevIndex, ttl: 600 });
      expect(renewed).toMatchObject({ action: 'compareAndSwap', node: { key, value: 'v', createdIndex } });
      expect(renewed.node.modifiedIndex).toBeGreaterThan(prevIndex);
      expectExpiry(renewed, 600);
      const { modifiedIndex, expiration } = renewed.node;
      expect((await keys.get(key)).node).toMatchObject({ value: 'v', createdIndex, modifiedIndex, expiration });
    });

    test('gives a TTL to a file that had none', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v');
      const renewal = { prevValue: 'v', prevIndex: node.modifiedIndex, ttl: 60 };
      expectExpiry(await keys.renew(`${dir}/f`, renewal), 60);
    });

    test('removes the expiry with null', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      const renewed = await keys.renew(`${dir}/f`, { prevValue: 'v', prevIndex: node.modifiedIndex, ttl: null });
      expect(renewed.node).not.toHaveProperty('ttl');
      const found = (await keys.get(`${dir}/f`)).node;
      expect(found).toMatchObject({ value: 'v', createdIndex: node.createdIndex });
      expect(found).not.toHaveProperty('expiration');
    });

    test('can follow another renewal, with the index of that renewal', async ({ keys, dir }) => {
      let { node } = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      const { createdIndex } = node;
      for (const ttl of [61, 62, 63])
        ({ node } = await keys.renew(`${dir}/f`, { prevValue: 'v', prevIndex: node.modifiedIndex, ttl }));
      expect(node).toMatchObject({ value: 'v', createdIndex, ttl: 63 });
    });

    test('notifies no watch, neither a current one nor one from history', async ({ keys, dir, openAnother }) => {
      const { node } = await keys.createInOrder(dir, 'v', { ttl: 60 });
      const { key, modifiedIndex: prevIndex } = node;
      const other = await openAnother();
      const waits = [await watching(other, key), await watching(other, dir, { recursive: true })];
      await keys.renew(key, { prevValue: 'v', prevIndex, ttl: 60 });
      const gone = await keys.delete(key);
      const events = [...waits.map(({ event }) => event), other.watch(key, { after: prevIndex })];
      for (const event of events)
        expect(await event).toMatchObject({ action: 'delete', index: gone.node.modifiedIndex });
    });

    test('is refused after another client has renewed the file', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      const renewal = { prevValue: 'v', prevIndex: node.modifiedIndex, ttl: 600 };
      const first = await keys.renew(`${dir}/f`, renewal);
      const error = await rejection(keys.renew(`${dir}/f`, { ...renewal, ttl: 6000 }), EtcdCompareFailed);
      expect(error.cause).toBe(`[${node.modifiedIndex} != ${first.node.modifiedIndex}]`);
      expect((await keys.get(`${dir}/f`)).node.expiration).toBe(first.node.expiration);
    });

    test('is refused for a new file of the same name and value', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      await keys.delete(`${dir}/f`);
      const again = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      const renewal = { prevValue: 'v', prevIndex: node.modifiedIndex, ttl: 600 };
      await rejection(keys.renew(`${dir}/f`, renewal), EtcdCompareFailed);
      expect((await keys.get(`${dir}/f`)).node.expiration).toBe(again.node.expiration);
    });

    test.for([600, null])('with a TTL of %s never creates a missing key', async (ttl, { keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      await keys.delete(`${dir}/f`);
      const renewal = { prevValue: 'v', prevIndex: node.modifiedIndex, ttl };
      await rejection(keys.renew(`${dir}/f`, renewal), EtcdKeyNotFound);
      await expectMissing(keys, `${dir}/f`);
    });
  });
}
