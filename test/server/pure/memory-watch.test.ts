import { expect, test } from 'vitest';
import { MemoryStore } from '../../../src/server/store/memory.ts';
import { Store } from '../../../src/server/store/store.ts';
import { rejection } from '../../support/clients.ts';

test('a watch that is aborted as it starts leaves no watcher behind', async () => {
  const store = new Store();
  const caller = new AbortController();
  const reason = new RangeError('enough');
  const watching = new MemoryStore(store).watch('/k', { signal: caller.signal, started: () => caller.abort(reason) });
  expect(await rejection(watching, RangeError)).toBe(reason);
  expect(store.watchers).toBe(0);
});
