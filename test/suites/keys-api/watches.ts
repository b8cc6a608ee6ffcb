import { describe, expect } from 'vitest';
import type { KeysApi } from '../../../src/v2/keys-api.ts';
import { listenersOf } from '../../support/leaks.ts';
import { until } from '../../support/until.ts';
import { type StoreTest, watching } from './store.ts';

export function watches(test: StoreTest): void {
  describe('watch', () => {
    test('reports the next event to every watch of the key', async ({ keys, dir, openAnother }) => {
      const other = await openAnother();
      const made = await keys.set(`${dir}/f`, 'v');
      const waits = await Promise.all(Array.from({ length: 10 }, () => watching(other, `${dir}/f`)));
      const { node } = await keys.set(`${dir}/f`, 'w');
      const expected = { action: 'set', node, prevNode: made.node, index: node.modifiedIndex };
      for (const { event } of waits) expect(await event).toMatchObject(expected);
    });

    test('reports the creation of a missing key', async ({ keys, dir }) => {
      const { event } = await watching(keys, `${dir}/a/f`);
      const { node } = await keys.set(`${dir}/a/f`, 'v');
      expect(await event).toMatchObject({ action: 'set', node });
    });

    test('does not report events of keys with similar names', async ({ keys, dir }) => {
      const { event } = await watching(keys, `${dir}/f`);
      for (const name of ['f2', 'F', 'e/f']) await keys.set(`${dir}/${name}`, 'v');
      await keys.set(`${dir}/f`, 'own');
      expect(await event).toMatchObject({ node: { key: `${dir}/f`, value: 'own' } });
    });

    test('without an index reports only events after its start', async ({ keys, dir }) => {
      const made = await keys.set(`${dir}/f`, 'v');
      const { event, index } = await watching(keys, `${dir}/f`);
      const { node } = await keys.set(`${dir}/f`, 'w');
      expect(await event).toMatchObject({ index: node.modifiedIndex, node: { value: 'w' } });
      expect(index).toBeGreaterThanOrEqual(made.node.modifiedIndex);
      expect(index).toBeLessThan(node.modifiedIndex);
    });

    test('after a future index reports the first event beyond that index', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v');
      const after = node.modifiedIndex + 3;
      const { event } = await watching(keys, `${dir}/f`, { after });
      const beyond = await until(
        () => keys.set(`${dir}/f`, 'w'),
        (change) => change.node.modifiedIndex > after,
      );
      expect((await event)?.index).toBe(beyond.node.modifiedIndex);
    });

    test('misses no event if each watch starts after the previous event', async ({ keys, dir }) => {
      const { index } = await keys.set(dir, undefined, { dir: true }).then(() => keys.get(dir));
      const written = Promise.all(Array.from({ length: 20 }, (_, i) => keys.set(`${dir}/f${i % 4}`, `${i}`)));
      const seen: number[] = [];
      let after = index;
      for (let i = 0; i < 20; i += 1) {
        after = (await keys.watch(dir, { after, recursive: true }))?.index ?? Number.NaN;
        seen.push(after);
      }
      const indices = (await written).map(({ node }) => node.modifiedIndex);
      expect(seen).toEqual(indices.sort((a, b) => a - b));
    });

    const ways: [string, (keys: KeysApi, key: string) => Promise<unknown>][] = [
      ['set', (keys, key) => keys.set(key, 'w')],
      ['update', (keys, key) => keys.set(key, 'w', { prevExist: true })],
      ['compareAndSwap', (keys, key) => keys.set(key, 'w', { prevValue: 'v' })],
      ['delete', (keys, key) => keys.delete(key)],
      ['compareAndDelete', (keys, key) => keys.delete(key, { prevValue: 'v' })],
    ];

    test.for(ways)(
      'reports a %s with the same nodes as its answer, now and from history',
      async ([action, change], { keys, dir }) => {
        const made = await keys.set(`${dir}/f`, 'v');
        const { event } = await watching(keys, `${dir}/f`);
        const answer = (await change(keys, `${dir}/f`)) as Record<'node' | 'prevNode', object>;
        const { node, prevNode } = answer;
        expect(await event).toMatchObject({ action, node, prevNode });
        expect(await keys.watch(`${dir}/f`, { after: made.node.modifiedIndex })).toMatchObject({
          action,
          node,
          prevNode,
        });
      },
    );
  });

  describe('a watch of a directory', () => {
    test('reports events in the directory if it is recursive', async ({ keys, dir }) => {
      await keys.set(`${dir}/d`, undefined, { dir: true });
      const { event } = await watching(keys, `${dir}/d`, { recursive: true });
      await keys.set(`${dir}/d2`, 'beside it');
      const { node } = await keys.set(`${dir}/d/a/b`, 'v');
      expect(await event).toMatchObject({ action: 'set', node });
    });

    test('reports only events of the directory itself if it is not recursive', async ({ keys, dir }) => {
      const made = await keys.set(`${dir}/d`, undefined, { dir: true });
      const { event } = await watching(keys, `${dir}/d`);
      await keys.set(`${dir}/d/f`, 'v');
      const gone = await keys.delete(`${dir}/d`, { recursive: true });
      const expected = { action: 'delete', node: gone.node };
      expect(await event).toMatchObject(expected);
      expect(await keys.watch(`${dir}/d`, { after: made.node.modifiedIndex })).toMatchObject(expected);
    });

    test('reports every event if it is recursive at the root', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v');
      const event = await keys.watch('/', { after: node.modifiedIndex - 1, recursive: true });
      expect(event).toMatchObject({ action: 'set', node });
    });

    test('does not report new events of hidden keys', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      const { event } = await watching(keys, dir, { recursive: true });
      for (const name of ['_f', '_d/f', 'd/_f', 'd/_d/f']) await keys.set(`${dir}/${name}`, 'hidden');
      await keys.set(`${dir}/f`, 'shown');
      expect(await event).toMatchObject({ node: { value: 'shown' } });
    });

    test('reports events of hidden keys from history', async ({ keys, dir }) => {
      const { index } = await keys.set(`${dir}/f`, 'v').then(() => keys.get(dir));
      const { node } = await keys.set(`${dir}/_d/f`, 'hidden');
      expect(await keys.watch(dir, { after: index, recursive: true })).toMatchObject({ node });
    });

    test('reports events in the directory if the directory itself is hidden', async ({ keys, dir }) => {
      await keys.set(`${dir}/_d/f`, 'v');
      const { event } = await watching(keys, `${dir}/_d`, { recursive: true });
      const { node } = await keys.createInOrder(`${dir}/_d`, 'w');
      expect(await event).toMatchObject({ action: 'create', node });
    });
  });

  describe('the removal of a directory', () => {
    test('notifies watches of keys in it, now and from history', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/d/a/f`, 'v');
      const after = node.modifiedIndex;
      const waits = [
        await watching(keys, `${dir}/d/a/f`),
        await watching(keys, `${dir}/d/a`),
        await watching(keys, `${dir}/d/a`, { recursive: true }),
        await watching(keys, dir, { recursive: true }),
      ];
      const gone = await keys.delete(`${dir}/d`, { recursive: true });
      const events = [...waits.map(({ event }) => event), keys.watch(`${dir}/d/a/f`, { after })];
      for (const event of events)
        expect(await event).toMatchObject({ action: 'delete', node: gone.node, prevNode: { key: `${dir}/d` } });
    });

    test('does not notify watches of keys that never existed in it', async ({ keys, dir }) => {
      await keys.set(`${dir}/d/f`, 'v');
      const { event } = await watching(keys, `${dir}/d/other`);
      await keys.delete(`${dir}/d`, { recursive: true });
      const { node } = await keys.set(`${dir}/d/other`, 'w');
      expect(await event).toMatchObject({ action: 'set', node });
    });
  });

  describe('the end of a watch', () => {
    test('comes without an event after the timeout, and not earlier', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v');
      const began = performance.now();
      expect(await keys.watch(`${dir}/f`, { after: node.modifiedIndex, timeout: 0.2 })).toBeUndefined();
      expect(performance.now() - began).toBeGreaterThanOrEqual(200);
    });

    test('does not come before the event with an infinite timeout', async ({ keys, dir }) => {
      const { event } = await watching(keys, `${dir}/f`, { timeout: Number.POSITIVE_INFINITY });
      const { node } = await keys.set(`${dir}/f`, 'v');
      expect(await event).toMatchObject({ index: node.modifiedIndex });
    });

    test('by an abort rejects with the reason, and does not affect other watches', async ({ keys, dir }) => {
      const abort = new AbortController();
      const { event } = await watching(keys, `${dir}/f`, { signal: abort.signal });
      const { event: other } = await watching(keys, `${dir}/f`);
      const reason = { any: 'value' };
      const ended = expect(event).rejects.toBe(reason);
      abort.abort(reason);
      await ended;
      const { node } = await keys.set(`${dir}/f`, 'v');
      expect(await other).toMatchObject({ index: node.modifiedIndex });
    });

    test('leaves no listener on the signal', async ({ keys, dir }) => {
      const { signal } = new AbortController();
      const { node } = await keys.set(`${dir}/f`, 'v');
      await keys.watch(`${dir}/f`, { after: node.modifiedIndex - 1, signal });
      await keys.watch(`${dir}/f`, { after: node.modifiedIndex, timeout: 0.01, signal });
      const { event } = await watching(keys, `${dir}/f`, { signal });
      await keys.delete(`${dir}/f`);
      await event;
      expect(listenersOf(signal)).toBe(0);
    });
  });
}
