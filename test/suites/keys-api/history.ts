import { describe, expect } from 'vitest';
import { EtcdEventIndexCleared, EtcdKeyNotFound } from '../../../src/errors.ts';
import type { KeysApi } from '../../../src/v2/keys-api.ts';
import { rejection } from '../../support/clients.ts';
import { type StoreTest, watching } from './store.ts';

/** Writes `count` events, up to 50 concurrently. */
async function events(keys: KeysApi, key: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 50)
    await Promise.all(Array.from({ length: Math.min(left, 50) }, () => keys.set(key, 'one of many')));
}

export function history(test: StoreTest): void {
  describe('the history', () => {
    test('contains the events of a key after an index, in order', async ({ keys, dir }) => {
      const first = await keys.set(`${dir}/f`, '1');
      const second = await keys.set(`${dir}/f`, '2');
      await keys.set(`${dir}/g`, 'of another key');
      const third = await keys.delete(`${dir}/f`);
      const indices = [first.node.modifiedIndex];
      for (const after of [first, second].map(({ node }) => node.modifiedIndex))
        indices.push((await keys.watch(`${dir}/f`, { after }))?.index ?? Number.NaN);
      expect(indices).toEqual([first, second, third].map(({ node }) => node.modifiedIndex));
    });

    test('gives the index at which a watch started, even if it has an event already', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v');
      const { event, index } = await watching(keys, `${dir}/f`, { after: node.modifiedIndex - 1 });
      expect(index).toBeGreaterThanOrEqual(node.modifiedIndex);
      expect(await event).toMatchObject({ index: node.modifiedIndex });
    });

    test('has every event between a listing and a watch that starts after its index', async ({ keys, dir }) => {
      const entry = await keys.createInOrder(dir, 'v');
      const { index } = await keys.get(dir, { recursive: true });
      const gone = await keys.delete(entry.node.key, { prevValue: 'v' });
      const event = await keys.watch(entry.node.key, { after: index });
      expect(event).toMatchObject({ action: 'compareAndDelete', index: gone.node.modifiedIndex });
    });

    test('has every event between an error and a watch that starts after its index', async ({ keys, dir }) => {
      const { index } = await rejection(keys.get(`${dir}/f`), EtcdKeyNotFound);
      const { node } = await keys.set(`${dir}/f`, 'v');
      expect(await keys.watch(`${dir}/f`, { after: index })).toMatchObject({ index: node.modifiedIndex });
    });

    test('has the last 1000 events', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v');
      const { modifiedIndex } = node;
      const after = modifiedIndex - 1;
      await events(keys, `${dir}/other`, 999);
      expect(await keys.watch(`${dir}/f`, { after })).toMatchObject({ index: modifiedIndex });
      await keys.set(`${dir}/other`, 'one too many');
      const error = await rejection(keys.watch(`${dir}/f`, { after }), EtcdEventIndexCleared);
      const cause = `the requested history has been cleared [${modifiedIndex + 1}/${modifiedIndex}]`;
      expect(error).toMatchObject({ errorCode: 401, cause, index: modifiedIndex + 1000, outcomeUnknown: false });
      expect(error.message).toBe(`The event in requested index is outdated and cleared (${cause})`);
    });

    test('has the events after a new read, once older ones are cleared', async ({ keys, dir }) => {
      const { node } = await keys.set(`${dir}/f`, 'v');
      await events(keys, `${dir}/other`, 1000);
      await rejection(keys.watch(`${dir}/f`, { after: node.modifiedIndex - 1 }), EtcdEventIndexCleared);
      const { index } = await keys.get(`${dir}/f`);
      const gone = await keys.delete(`${dir}/f`);
      expect(await keys.watch(`${dir}/f`, { after: index })).toMatchObject({ index: gone.node.modifiedIndex });
    });

    test('counts renewals, but does not report them', async ({ keys, dir }) => {
      let { node } = await keys.set(`${dir}/f`, 'v', { ttl: 600 });
      const first = node.modifiedIndex;
      await events(keys, `${dir}/other`, 997);
      for (let i = 0; i < 2; i += 1)
        ({ node } = await keys.renew(`${dir}/f`, { prevValue: 'v', prevIndex: node.modifiedIndex, ttl: 600 }));
      expect(await keys.watch(`${dir}/f`, { after: first - 1 })).toMatchObject({ action: 'set', index: first });
      await keys.renew(`${dir}/f`, { prevValue: 'v', prevIndex: node.modifiedIndex, ttl: 600 });
      await rejection(keys.watch(`${dir}/f`, { after: first - 1 }), EtcdEventIndexCleared);
    });
  });
}
