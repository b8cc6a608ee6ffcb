import { describe, expect } from 'vitest';
import { expectExpiry, keysOf, type StoreTest, watching } from './store.ts';

export function appends(test: StoreTest): void {
  describe('createInOrder', () => {
    test('makes a file named by its own index in 20 digits, and the directories above it', async ({ keys, dir }) => {
      const { action, node, prevNode } = await keys.createInOrder(`${dir}/a/q`, 'v');
      const { modifiedIndex } = node;
      const key = `${dir}/a/q/${String(modifiedIndex).padStart(20, '0')}`;
      expect(action).toBe('create');
      expect(node).toEqual({ key, value: 'v', dir: false, createdIndex: modifiedIndex, modifiedIndex, nodes: [] });
      expect(prevNode).toBeUndefined();
      expect((await keys.get(`${dir}/a/q`)).node.nodes).toEqual([node]);
    });

    test('gives names that grow, also after those before are gone', async ({ keys, dir }) => {
      const names: string[] = [];
      for (let i = 0; i < 4; i += 1) {
        const { node } = await keys.createInOrder(dir, 'v');
        names.push(node.key);
        await keys.delete(node.key);
      }
      expect(new Set(names).size).toBe(4);
      expect(names.toSorted()).toEqual(names);
    });

    test('gives each of many at a time a name of its own', async ({ keys, dir, openAnother }) => {
      const other = await openAnother();
      const made = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % 2 ? keys : other).createInOrder(dir, `v${i}`)),
      );
      const { node } = await keys.get(dir, { sorted: true });
      expect(node.nodes).toEqual(made.map((one) => one.node).sort((a, b) => a.modifiedIndex - b.modifiedIndex));
      expect(new Set(keysOf(node.nodes)).size).toBe(20);
    });

    test('brings a listing with the new file in it where that is wanted', async ({ keys, dir }) => {
      const first = await keys.createInOrder(`${dir}/inner`, 'v');
      const { node, listing } = await keys.createInOrder(dir, 'w', { listing: true });
      const found = await listing;
      expect(found?.index).toBeGreaterThanOrEqual(node.modifiedIndex);
      expect(found?.node.nodes.flatMap(({ nodes, ...child }) => [child.key, ...keysOf(nodes)]).sort()).toEqual(
        [node.key, `${dir}/inner`, first.node.key].sort(),
      );
      expect(await first.listing).toBeUndefined();
    });

    test('sets a TTL', async ({ keys, dir }) => {
      const made = await keys.createInOrder(dir, 'v', { ttl: 60 });
      expectExpiry(made, 60);
      expect((await keys.get(made.node.key)).node.expiration).toBe(made.node.expiration);
    });

    test.for([
      ['null', null],
      ['none', undefined],
    ] as const)('makes what never expires with a TTL of %s', async ([, ttl], { keys, dir }) => {
      const { node } = await keys.createInOrder(dir, 'v', { ttl });
      expect(node).not.toHaveProperty('ttl');
      expect(node).not.toHaveProperty('expiration');
    });

    test('makes an empty file where there is no value', async ({ keys, dir }) => {
      const { node } = await keys.createInOrder(dir, undefined);
      expect((await keys.get(node.key)).node).toMatchObject({ value: '', dir: false });
    });

    test('makes a directory when asked for one', async ({ keys, dir }) => {
      const made = await keys.createInOrder(dir, undefined, { dir: true, ttl: 60 });
      const { key, modifiedIndex } = made.node;
      expect(made.node).toMatchObject({ key: `${dir}/${String(modifiedIndex).padStart(20, '0')}`, dir: true });
      expect(made.node).not.toHaveProperty('value');
      expectExpiry(made, 60);
      const child = await keys.createInOrder(key, 'v');
      expect((await keys.get(key)).node.nodes).toEqual([child.node]);
    });

    test('makes an entry in the root', async ({ keys }) => {
      const { node } = await keys.createInOrder('/', 'v', { ttl: 60 });
      expect(node.key).toBe(`/${String(node.modifiedIndex).padStart(20, '0')}`);
      expect((await keys.delete(node.key)).prevNode?.value).toBe('v');
    });

    test('wakes who watches the directory with all that is in it', async ({ keys, dir }) => {
      const { event } = await watching(keys, dir, { recursive: true });
      const { node } = await keys.createInOrder(dir, 'v');
      expect(await event).toMatchObject({ action: 'create', node, index: node.modifiedIndex });
    });
  });
}
