import { describe, expect } from 'vitest';
import type { DeleteOptions } from '../../../src/v2/keys-api.ts';
import { expectMissing, type StoreTest } from './store.ts';

export function deletions(test: StoreTest): void {
  describe('delete', () => {
    test.for<[string, DeleteOptions]>([
      ['no options', {}],
      ['the option dir', { dir: true }],
      ['the option recursive', { recursive: true }],
    ])('removes a file with %s, and returns the previous node', async ([, options], { keys, dir }) => {
      const made = await keys.set(`${dir}/f`, 'v');
      const { action, node, prevNode } = await keys.delete(`${dir}/f`, options);
      expect(action).toBe('delete');
      expect(node).toMatchObject({ key: `${dir}/f`, dir: false, createdIndex: made.node.createdIndex, nodes: [] });
      expect(node).not.toHaveProperty('value');
      expect(node.modifiedIndex).toBeGreaterThan(made.node.modifiedIndex);
      expect(prevNode).toEqual(made.node);
      await expectMissing(keys, `${dir}/f`);
    });

    test('keeps the directory of a removed file, and the other files in it', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      await keys.set(`${dir}/g`, 'w');
      await keys.delete(`${dir}/f`);
      expect((await keys.get(dir)).node.nodes).toMatchObject([{ key: `${dir}/g`, value: 'w' }]);
    });

    test('removes an empty directory with the option dir', async ({ keys, dir }) => {
      const made = await keys.set(`${dir}/d`, undefined, { dir: true });
      const { action, node, prevNode } = await keys.delete(`${dir}/d`, { dir: true });
      expect({ action, dir: node.dir }).toEqual({ action: 'delete', dir: true });
      expect(prevNode).toEqual(made.node);
      await expectMissing(keys, `${dir}/d`);
    });

    test('removes a directory and everything in it, including hidden keys', async ({ keys, dir }) => {
      for (const name of ['a/b/c', 'a/_hidden', 'd']) await keys.set(`${dir}/${name}`, 'v');
      const { node, prevNode } = await keys.delete(dir, { recursive: true });
      expect(node).toMatchObject({ key: dir, dir: true, nodes: [] });
      expect(prevNode).toMatchObject({ key: dir, dir: true, nodes: [] });
      for (const name of ['', '/a', '/a/b/c', '/a/_hidden', '/d']) await expectMissing(keys, `${dir}${name}`);
    });

    test.for<[string, (index: number) => DeleteOptions]>([
      ['value', () => ({ prevValue: 'v' })],
      ['index', (prevIndex) => ({ prevIndex })],
      ['value and index', (prevIndex) => ({ prevValue: 'v', prevIndex })],
    ])('removes a file with the given %s', async ([, options], { keys, dir }) => {
      const made = await keys.set(`${dir}/f`, 'v');
      const { action, node, prevNode } = await keys.delete(`${dir}/f`, options(made.node.modifiedIndex));
      expect(action).toBe('compareAndDelete');
      expect(node).toMatchObject({ key: `${dir}/f`, createdIndex: made.node.createdIndex });
      expect(node).not.toHaveProperty('value');
      expect(prevNode).toEqual(made.node);
      await expectMissing(keys, `${dir}/f`);
    });

    test('makes a later file of the same name a new file', async ({ keys, dir }) => {
      const made = await keys.set(`${dir}/f`, 'v');
      const gone = await keys.delete(`${dir}/f`);
      const again = await keys.set(`${dir}/f`, 'w');
      expect(again.prevNode).toBeUndefined();
      expect(again.node.createdIndex).toBeGreaterThan(gone.node.modifiedIndex);
      expect(gone.node.modifiedIndex).toBeGreaterThan(made.node.modifiedIndex);
    });
  });
}
