import { describe, expect } from 'vitest';
import type { SetOptions } from '../../../src/v2/keys-api.ts';
import { expectExpiry, type StoreTest, watching } from './store.ts';

export function files(test: StoreTest): void {
  describe('set', () => {
    test('creates a file, and missing directories above it', async ({ keys, dir }) => {
      const { action, node, prevNode } = await keys.set(`${dir}/a/b/f`, 'v');
      const { modifiedIndex } = node;
      expect(action).toBe('set');
      expect(node).toEqual({
        key: `${dir}/a/b/f`,
        value: 'v',
        dir: false,
        createdIndex: modifiedIndex,
        modifiedIndex,
        nodes: [],
      });
      expect(prevNode).toBeUndefined();
      expect((await keys.get(`${dir}/a`)).node).toMatchObject({
        dir: true,
        createdIndex: modifiedIndex,
        modifiedIndex,
      });
    });

    test('replaces a file by a new one, and returns the previous node', async ({ keys, dir }) => {
      const first = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      const { action, node, prevNode } = await keys.set(`${dir}/f`, 'w');
      expect(action).toBe('set');
      expect(node).toMatchObject({ value: 'w', createdIndex: node.modifiedIndex });
      expect(node.modifiedIndex).toBeGreaterThan(first.node.modifiedIndex);
      expect(prevNode).toMatchObject({ ...first.node, ttl: expect.any(Number) });
      expect((await keys.get(`${dir}/f`)).node).toEqual(node);
    });

    test('creates an empty file without a value', async ({ keys, dir }) => {
      expect((await keys.set(`${dir}/f`, undefined)).node).toMatchObject({ value: '', dir: false });
      expect((await keys.get(`${dir}/f`)).node.value).toBe('');
    });

    test('sets a TTL, which the answer and later reads show with the time of expiry', async ({ keys, dir }) => {
      const made = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      expectExpiry(made, 60);
      const { node } = await keys.get(`${dir}/f`);
      expect(node.expiration).toBe(made.node.expiration);
      expect(node.ttl).toBeGreaterThan(57);
      expect(node.ttl).toBeLessThanOrEqual(60);
    });

    test.for<[string, SetOptions]>([
      ['an overwrite without one', {}],
      ['an overwrite with null', { ttl: null }],
      ['an update without one', { prevExist: true }],
      ['an update with null', { prevExist: true, ttl: null }],
      ['a compare-and-swap without one', { prevValue: 'v' }],
      ['a compare-and-swap with null', { prevValue: 'v', ttl: null }],
    ])('removes a TTL by %s', async ([, options], { keys, dir }) => {
      await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      const { node, prevNode } = await keys.set(`${dir}/f`, 'v', options);
      expect(prevNode).toHaveProperty('ttl');
      for (const seen of [node, (await keys.get(`${dir}/f`)).node]) {
        expect(seen).not.toHaveProperty('ttl');
        expect(seen).not.toHaveProperty('expiration');
      }
    });

    test('replaces a TTL by an overwrite with another one', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      expectExpiry(await keys.set(`${dir}/f`, 'v', { ttl: 600 }), 600);
    });
  });

  describe('set with a condition', () => {
    test('creates a missing file with prevExist false', async ({ keys, dir }) => {
      const { action, node, prevNode } = await keys.set(`${dir}/f`, 'v', { prevExist: false, ttl: 60 });
      expect(action).toBe('create');
      expect(node).toMatchObject({ value: 'v', createdIndex: node.modifiedIndex, ttl: 60 });
      expect(prevNode).toBeUndefined();
    });

    test('updates an existing file with prevExist true, and keeps its createdIndex', async ({ keys, dir }) => {
      const first = await keys.set(`${dir}/f`, 'v');
      const { action, node, prevNode } = await keys.set(`${dir}/f`, 'w', { prevExist: true, ttl: 60 });
      expect(action).toBe('update');
      expect(node).toMatchObject({ value: 'w', createdIndex: first.node.createdIndex, ttl: 60 });
      expect(node.modifiedIndex).toBeGreaterThan(first.node.modifiedIndex);
      expect(prevNode).toEqual(first.node);
      expect((await keys.get(`${dir}/f`)).node).toMatchObject({ value: 'w', modifiedIndex: node.modifiedIndex });
    });

    test.for<[string, (index: number) => SetOptions]>([
      ['value', () => ({ prevValue: 'v' })],
      ['index', (index) => ({ prevIndex: index })],
      ['value and index', (index) => ({ prevValue: 'v', prevIndex: index })],
      ['value, and with prevExist true', () => ({ prevValue: 'v', prevExist: true })],
    ])('swaps the value of a file with the given %s', async ([, options], { keys, dir }) => {
      const first = await keys.set(`${dir}/f`, 'v');
      const swapped = await keys.set(`${dir}/f`, 'w', { ...options(first.node.modifiedIndex), ttl: 60 });
      const { action, node, prevNode } = swapped;
      expect(action).toBe('compareAndSwap');
      expect(node).toMatchObject({ value: 'w', createdIndex: first.node.createdIndex, ttl: 60 });
      expect(node.modifiedIndex).toBeGreaterThan(first.node.modifiedIndex);
      expect(prevNode).toEqual(first.node);
      expect((await keys.get(`${dir}/f`)).node.value).toBe('w');
    });

    test('lets only one of many concurrent swaps of the same value succeed', async ({ keys, dir, openAnother }) => {
      const other = await openAnother();
      await keys.set(`${dir}/f`, 'v');
      const swaps = Array.from({ length: 10 }, (_, i) =>
        (i % 2 ? keys : other).set(`${dir}/f`, `w${i}`, { prevValue: 'v' }),
      );
      const won = (await Promise.allSettled(swaps)).flatMap((swap) => (swap.status === 'fulfilled' ? swap.value : []));
      expect(won).toHaveLength(1);
      expect((await keys.get(`${dir}/f`)).node.value).toBe(won[0]?.node.value);
    });
  });

  describe('set with refresh', () => {
    const refreshes: [string, (index: number) => SetOptions, string][] = [
      ['no condition', () => ({}), 'set'],
      ['prevExist', () => ({ prevExist: true }), 'update'],
      ['prevValue', () => ({ prevValue: 'v' }), 'compareAndSwap'],
      ['prevIndex', (prevIndex) => ({ prevIndex }), 'compareAndSwap'],
    ];

    test.for(refreshes)('and %s keeps the value and sets the TTL', async ([, conditions, action], { keys, dir }) => {
      const first = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
      const { modifiedIndex } = first.node;
      const options = { refresh: true, ttl: 600, ...conditions(modifiedIndex) };
      const refreshed = await keys.set(`${dir}/f`, undefined, options);
      expect(refreshed).toMatchObject({ action, node: { value: 'v' }, prevNode: { value: 'v', modifiedIndex } });
      expect(refreshed.node.modifiedIndex).toBeGreaterThan(modifiedIndex);
      expectExpiry(refreshed, 600);
      expect((await keys.get(`${dir}/f`)).node).toMatchObject({
        value: 'v',
        modifiedIndex: refreshed.node.modifiedIndex,
        expiration: refreshed.node.expiration,
      });
    });

    test.for(refreshes)(
      'and %s notifies no watch, neither a current one nor one from history',
      async ([, conditions], { keys, dir }) => {
        const { node } = await keys.set(`${dir}/f`, 'v', { ttl: 60 });
        const waits = [await watching(keys, `${dir}/f`), await watching(keys, dir, { recursive: true })];
        const options = { refresh: true, ttl: 60, ...conditions(node.modifiedIndex) };
        await keys.set(`${dir}/f`, undefined, options);
        const gone = await keys.delete(`${dir}/f`);
        const events = [...waits.map(({ event }) => event), keys.watch(`${dir}/f`, { after: node.modifiedIndex })];
        const { modifiedIndex } = gone.node;
        for (const event of events) expect(await event).toMatchObject({ action: 'delete', node: { modifiedIndex } });
      },
    );
  });
}
