import { describe, expect } from 'vitest';
import { addAbortListener } from '../../../src/base/cancellation.ts';
import { EtcdClientClosed } from '../../../src/errors.ts';
import { rejection } from '../../support/clients.ts';
import { listenersOf } from '../../support/leaks.ts';
import { CALLS, expectMissing, type StoreTest, treeOf, watching } from './store.ts';

export function ends(test: StoreTest): void {
  describe('a call', () => {
    test.for(CALLS)('of %s with an already aborted signal does nothing', async ([, call], { keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      const before = await treeOf(keys, dir);
      const reason = { any: 'value' };
      await expect(call(keys, `${dir}/f`, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      expect(await treeOf(keys, dir)).toEqual(before);
    });

    test('leaves no listener on its signal, whether it succeeds or fails', async ({ keys, dir }) => {
      const { signal } = new AbortController();
      await keys.set(`${dir}/f`, 'v', { signal });
      await Promise.allSettled(CALLS.map(([, call]) => call(keys, `${dir}/f`, { signal })));
      expect(listenersOf(signal)).toBe(0);
    });
  });

  describe('close', () => {
    test.for(CALLS)(
      'makes a later %s reject and do nothing, without an effect on other clients',
      async ([, call], { keys, dir, openAnother }) => {
        const other = await openAnother();
        await keys.set(`${dir}/f`, 'v');
        const before = await treeOf(keys, dir);
        await keys.close();
        await rejection(call(keys, `${dir}/f`), EtcdClientClosed);
        expect(await treeOf(other, dir)).toEqual(before);
      },
    );

    test.for(CALLS)('makes a later %s in the background reject', async ([, call], { keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      await keys.close();
      await rejection(call(keys, `${dir}/f`, { background: true }), EtcdClientClosed);
    });

    test('ends a watch in the background', async ({ keys, dir }) => {
      const { event } = await watching(keys, `${dir}/f`, { background: true, timeout: Number.POSITIVE_INFINITY });
      const ended = rejection(event, EtcdClientClosed);
      await keys.close();
      await ended;
    });

    test('ends the watches of this client, but not those of another client', async ({ keys, dir, openAnother }) => {
      const other = await openAnother();
      const own = await watching(keys, `${dir}/f`);
      const others = await watching(other, `${dir}/f`);
      const ended = rejection(own.event, EtcdClientClosed);
      await keys.close();
      await ended;
      const { node } = await other.set(`${dir}/f`, 'v');
      expect(await others.event).toMatchObject({ index: node.modifiedIndex });
    });

    test('may be called several times, even at the same time', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      await Promise.all([keys.close(), keys.close()]);
      await keys.close();
      await rejection(keys.get(`${dir}/f`), EtcdClientClosed);
    });

    test('waits for pending removals, which may still call the store in the background', async ({
      keys,
      dir,
      openAnother,
    }) => {
      const other = await openAnother();
      await keys.set(`${dir}/f`, 'v');
      const { closing } = keys.cleanups;
      const removal = new Promise((resolve) => addAbortListener(closing, resolve)).then(async () => {
        await keys.delete(`${dir}/f`, { background: true });
      });
      keys.cleanups.add(`${dir}/f`, removal);
      expect(closing.aborted).toBe(false);
      await keys.close();
      expect(closing.reason).toBeInstanceOf(EtcdClientClosed);
      await expectMissing(other, `${dir}/f`);
    });
  });
}
