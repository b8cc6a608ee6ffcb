import { describe, expect } from 'vitest';
import { addAbortListener } from '../../../src/cancellation.ts';
import { EtcdClientClosed } from '../../../src/errors.ts';
import { rejection } from '../../support/clients.ts';
import { listenersOf } from '../../support/leaks.ts';
import { CALLS, expectMissing, type StoreTest, treeOf, watching } from './store.ts';

export function ends(test: StoreTest): void {
  describe('a call', () => {
    test.for(CALLS)('of %s with a signal that is aborted already does nothing', async ([, call], { keys, dir }) => {
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
      'makes %s reject and do nothing, and other clients go on',
      async ([, call], { keys, dir, openAnother }) => {
        const other = await openAnother();
        await keys.set(`${dir}/f`, 'v');
        const before = await treeOf(keys, dir);
        await keys.close();
        await rejection(call(keys, `${dir}/f`), EtcdClientClosed);
        expect(await treeOf(other, dir)).toEqual(before);
      },
    );

    test.for(CALLS)('makes %s reject also as work nobody waits for', async ([, call], { keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      await keys.close();
      await rejection(call(keys, `${dir}/f`, { background: true }), EtcdClientClosed);
    });

    test('ends a wait that nobody waits for', async ({ keys, dir }) => {
      const { event } = await watching(keys, `${dir}/f`, { background: true, timeout: Number.POSITIVE_INFINITY });
      const ended = rejection(event, EtcdClientClosed);
      await keys.close();
      await ended;
    });

    test('ends the waits of this client, and those of no other', async ({ keys, dir, openAnother }) => {
      const other = await openAnother();
      const own = await watching(keys, `${dir}/f`);
      const others = await watching(other, `${dir}/f`);
      const ended = rejection(own.event, EtcdClientClosed);
      await keys.close();
      await ended;
      const { node } = await other.set(`${dir}/f`, 'v');
      expect(await others.event).toMatchObject({ index: node.modifiedIndex });
    });

    test('may be called again, also meanwhile', async ({ keys, dir }) => {
      await keys.set(`${dir}/f`, 'v');
      await Promise.all([keys.close(), keys.close()]);
      await keys.close();
      await rejection(keys.get(`${dir}/f`), EtcdClientClosed);
    });

    test('waits for what is still owed, which may go on in the background', async ({ keys, dir, openAnother }) => {
      const other = await openAnother();
      await keys.set(`${dir}/f`, 'v');
      const { closing } = keys.cleanups;
      const owed = new Promise((resolve) => addAbortListener(closing, resolve)).then(async () => {
        await keys.delete(`${dir}/f`, { background: true });
      });
      keys.cleanups.add(`${dir}/f`, owed);
      expect(closing.aborted).toBe(false);
      await keys.close();
      expect(closing.reason).toBeInstanceOf(EtcdClientClosed);
      await expectMissing(other, `${dir}/f`);
    });
  });
}
