import { describe, expect } from 'vitest';
import { expectExpiry, type StoreTest, watching } from './store.ts';

export function directories(test: StoreTest): void {
  describe('set of a directory', () => {
    test('creates an empty directory, and missing directories above it', async ({ keys, dir }) => {
      const { action, node, prevNode } = await keys.set(`${dir}/a/d`, undefined, { dir: true });
      const { modifiedIndex } = node;
      expect(action).toBe('set');
      expect(node).toEqual({ key: `${dir}/a/d`, dir: true, createdIndex: modifiedIndex, modifiedIndex, nodes: [] });
      expect(prevNode).toBeUndefined();
      expect((await keys.get(`${dir}/a`)).node.nodes).toEqual([node]);
    });

    test('creates a directory with a TTL', async ({ keys, dir }) => {
      const made = await keys.set(`${dir}/d`, undefined, { dir: true, ttl: 60 });
      expectExpiry(made, 60);
      expect((await keys.get(`${dir}/d`)).node).toMatchObject({ dir: true, expiration: made.node.expiration });
    });

    test('with prevExist false creates a missing directory', async ({ keys, dir }) => {
      const { action, node } = await keys.set(`${dir}/d`, undefined, { dir: true, prevExist: false });
      expect({ action, dir: node.dir }).toEqual({ action: 'create', dir: true });
    });

    test('replaces a file by a directory', async ({ keys, dir }) => {
      const file = await keys.set(`${dir}/x`, 'v');
      const { node, prevNode } = await keys.set(`${dir}/x`, undefined, { dir: true });
      expect(node).toMatchObject({ dir: true, createdIndex: node.modifiedIndex });
      expect(prevNode).toEqual(file.node);
      await keys.set(`${dir}/x/below`, 'w');
      expect((await keys.get(`${dir}/x`)).node).toMatchObject({ dir: true, nodes: [{ value: 'w' }] });
    });

    test('updates the TTL and keeps the content', async ({ keys, dir }) => {
      const child = await keys.set(`${dir}/d/f`, 'v');
      const updated = await keys.set(`${dir}/d`, undefined, { dir: true, prevExist: true, ttl: 60 });
      expect(updated).toMatchObject({ action: 'update', node: { dir: true, createdIndex: child.node.createdIndex } });
      expect(updated.node.modifiedIndex).toBeGreaterThan(child.node.modifiedIndex);
      expectExpiry(updated, 60);
      expect((await keys.get(`${dir}/d`)).node).toMatchObject({
        expiration: updated.node.expiration,
        nodes: [{ value: 'v' }],
      });
    });

    test.for([
      ['null', null],
      ['none', undefined],
    ] as const)('removes the TTL by an update with a TTL of %s', async ([, ttl], { keys, dir }) => {
      await keys.set(`${dir}/d`, undefined, { dir: true, ttl: 60 });
      const { node } = await keys.set(`${dir}/d`, undefined, { dir: true, prevExist: true, ttl });
      expect(node).not.toHaveProperty('ttl');
      expect((await keys.get(`${dir}/d`)).node).not.toHaveProperty('expiration');
    });

    test('reports an update with a new index, but the directory keeps its modifiedIndex', async ({ keys, dir }) => {
      const made = await keys.set(`${dir}/d`, undefined, { dir: true });
      const { event } = await watching(keys, `${dir}/d`);
      const { node } = await keys.set(`${dir}/d`, undefined, { dir: true, prevExist: true, ttl: 60 });
      expect(await event).toMatchObject({ action: 'update', index: node.modifiedIndex });
      expect((await keys.get(`${dir}/d`)).node.modifiedIndex).toBe(made.node.modifiedIndex);
    });

    test('notifies no watch of a refresh of the TTL', async ({ keys, dir }) => {
      await keys.set(`${dir}/d`, undefined, { dir: true, ttl: 60 });
      const { event } = await watching(keys, `${dir}/d`);
      const options = { dir: true, prevExist: true, refresh: true, ttl: 600 };
      expectExpiry(await keys.set(`${dir}/d`, undefined, options), 600);
      await keys.delete(`${dir}/d`, { dir: true });
      expect(await event).toMatchObject({ action: 'delete', node: { key: `${dir}/d` } });
    });
  });
}
