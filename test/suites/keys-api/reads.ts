import { describe, expect } from 'vitest';
import { expectMissing, keysOf, type StoreTest } from './store.ts';

export function reads(test: StoreTest): void {
  describe('get', () => {
    test('returns a file with its value and indexes', async ({ keys, dir }) => {
      const made = await keys.set(`${dir}/f`, 'v');
      const { modifiedIndex } = made.node;
      const { node, index } = await keys.get(`${dir}/f`);
      expect(node).toEqual({
        key: `${dir}/f`,
        value: 'v',
        dir: false,
        createdIndex: modifiedIndex,
        modifiedIndex,
        nodes: [],
      });
      expect(index).toBeGreaterThanOrEqual(modifiedIndex);
    });

    test('returns a directory with its children, but without their children', async ({ keys, dir }) => {
      const first = await keys.set(`${dir}/f`, 'v');
      await keys.set(`${dir}/d/below`, 'w');
      const { node } = await keys.get(dir);
      const { modifiedIndex, createdIndex } = first.node;
      expect(node).toMatchObject({ key: dir, dir: true, modifiedIndex, createdIndex });
      expect(node).not.toHaveProperty('value');
      expect(node.nodes).toHaveLength(2);
      expect(node.nodes).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ key: `${dir}/f`, value: 'v', dir: false }),
          expect.objectContaining({ key: `${dir}/d`, dir: true, nodes: [] }),
        ]),
      );
    });

    test('returns everything below a directory with the option recursive', async ({ keys, dir }) => {
      await keys.set(`${dir}/a/b/c`, 'v');
      await keys.set(`${dir}/a/d`, 'w');
      const { node } = await keys.get(dir, { recursive: true, sorted: true });
      expect(node.nodes).toMatchObject([
        {
          key: `${dir}/a`,
          dir: true,
          nodes: [
            { key: `${dir}/a/b`, dir: true, nodes: [{ key: `${dir}/a/b/c`, value: 'v' }] },
            { key: `${dir}/a/d`, value: 'w' },
          ],
        },
      ]);
    });

    test('sorts by the bytes of the names on every level with the option sorted', async ({ keys, dir }) => {
      const sorted = ['-', '0', '10', '9', 'A', 'a', 'a b', 'ab', 'é', '中', '\uff5e', '🔒'];
      for (const name of sorted.toReversed()) {
        await keys.set(`${dir}/${name}`, '');
        await keys.set(`${dir}/z/${name}`, '');
      }
      const { node } = await keys.get(dir, { recursive: true, sorted: true });
      const { nodes: below } = (await keys.get(`${dir}/z`, { sorted: true })).node;
      expect(keysOf(below)).toEqual(sorted.map((name) => `${dir}/z/${name}`));
      expect(node.nodes.find(({ key }) => key === `${dir}/z`)?.nodes).toEqual(below);
      expect(keysOf(node.nodes)).toEqual([...sorted.slice(0, 8), 'z', ...sorted.slice(8)].map((n) => `${dir}/${n}`));
    });

    test('returns an empty directory without children', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      await keys.delete(`${dir}/f`);
      expect((await keys.get(dir, { recursive: true })).node).toMatchObject({ key: dir, dir: true, nodes: [] });
    });

    test('returns the root as a directory with the indexes 0', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      const { node } = await keys.get('/');
      expect(node).toMatchObject({ key: '/', dir: true, createdIndex: 0, modifiedIndex: 0 });
      expect(keysOf(node.nodes)).toContain('/contract');
    });

    test('returns the same with the option quorum', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      const options = { recursive: true, sorted: true };
      expect((await keys.get(dir, { ...options, quorum: true })).node).toEqual((await keys.get(dir, options)).node);
    });

    test('returns what another client wrote', async ({ keys, dir, openAnother }) => {
      const other = await openAnother();
      await keys.set(`${dir}/f`, 'v');
      expect((await other.get(`${dir}/f`)).node.value).toBe('v');
      await other.delete(`${dir}/f`);
      await expectMissing(keys, `${dir}/f`);
    });
  });

  describe('a key whose name begins with an underscore', () => {
    test.for([
      ['', ['a', 'a/plain', 'plain']],
      ['/_dir', ['_dir/plain']],
      ['/a/_dir', ['a/_dir/plain']],
    ] as const)(
      'is hidden in listings of the directories above it, as seen from "%s"',
      async ([from, seen], { keys, dir }) => {
        for (const name of ['_file', '_dir/plain', '_dir/_file', 'a/_dir/plain', 'a/plain', 'plain'])
          await keys.set(`${dir}/${name}`, 'v');
        const { node } = await keys.get(`${dir}${from}`, { recursive: true, sorted: true });
        const found = node.nodes.flatMap((child) => keysOf([child, ...child.nodes]));
        expect(found).toEqual(seen.map((name) => `${dir}/${name}`));
      },
    );

    test('can be read by its own name', async ({ keys, dir }) => {
      await keys.set(`${dir}/_file`, 'v');
      await keys.createInOrder(`${dir}/_dir`, 'w');
      expect((await keys.get(`${dir}/_file`)).node.value).toBe('v');
      expect((await keys.get(`${dir}/_dir`)).node.nodes).toMatchObject([{ value: 'w' }]);
      expect((await keys.get(dir)).node.nodes).toEqual([]);
    });
  });
}
