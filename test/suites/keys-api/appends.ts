import { describe, expect } from 'vitest';
import { expectExpiry, keysOf, type StoreTest, watching } from './store.ts';

export function appends(test: StoreTest): void {
  describe('createInOrder', () => {
    test('creates a file whose name is its index in 20 digits, and missing directories', async ({ keys, dir }) => {
      const { action, node, prevNode } = await keys.createInOrder(`${dir}/a/q`, 'v');
      const { modifiedIndex } = node;
      const key = `${dir}/a/q/${String(modifiedIndex).padStart(20, '0')}`;
      expect(action).toBe('create');
      expect(node).toEqual({ key, value: 'v', dir: false, createdIndex: modifiedIndex, modifiedIndex, nodes: [] });
      expect(prevNode).toBeUndefined();
      expect((await keys.get(`${dir}/a/q`)).node.nodes).toEqual([node]);
    });

    test('creates growing names, even after earlier files are gone', async ({ keys, dir }) => {
      const names: string[] = [];
      for (let i = 0; i < 4; i += 1) {
        const { node } = await keys.createInOrder(dir, 'v');
        names.push(node.key);
        await keys.delete(node.key);
      }
      expect(new Set(names).size).toBe(4);
      expect(names.toSorted()).toEqual(names);
    });

    test('creates a different name for each of many concurrent calls', async ({ keys, dir, openAnother }) => {
      const other = await openAnother();
      const made = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % 2 ? keys : other).createInOrder(dir, `v${i}`)),
      );
      const { node } = await keys.get(dir, { sorted: true });
      expect(node.nodes).toEqual(made.map((one) => one.node).sort((a, b) => a.modifiedIndex - b.modifiedIndex));
      expect(new Set(keysOf(node.nodes)).size).toBe(20);
    });

    test('returns a listing with the new file if the caller wants one', async ({ keys, dir }) => {
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
    ] as const)('creates a file that never expires with a TTL of %s', async ([, ttl], { keys, dir }) => {
      const { node } = await keys.createInOrder(dir, 'v', { ttl });
      expect(node).not.toHaveProperty('ttl');
      expect(node).not.toHaveProperty('expiration');
    });

    test('creates an empty file without a value', async ({ keys, dir }) => {
      const { node } = await keys.createInOrder(dir, undefined);
      expect((await keys.get(node.key)).node).toMatchObject({ value: '', dir: false });
    });

    test('creates a directory with the option dir', async ({ keys, dir }) => {
      const made = await keys.createInOrder(dir, undefined, { dir: true, ttl: 60 });
      const { key, modifiedIndex } = made.node;
      expect(made.node).toMatchObject({ key: `${dir}/${String(modifiedIndex).padStart(20, '0')}`, dir: true });
      expect(made.node).not.toHaveProperty('value');
      expectExpiry(made, 60);
      const child = await keys.createInOrder(key, 'v');
      expect((await keys.get(key)).node.nodes).toEqual([child.node]);
    });

    test('creates a file in the root', async ({ keys }) => {
      const { node } = await keys.createInOrder('/', 'v', { ttl: 60 });
      expect(node.key).toBe(`/${String(node.modifiedIndex).padStart(20, '0')}`);
      expect((await keys.delete(node.key)).prevNode?.value).toBe('v');
    });

    test('notifies a recursive watch of the directory', async ({ keys, dir }) => {
      const { event } = await watching(keys, dir, { recursive: true });
      const { node } = await keys.createInOrder(dir, 'v');
      expect(await event).toMatchObject({ action: 'create', node, index: node.modifiedIndex });
    });
  });
}
