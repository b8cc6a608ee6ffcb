import { describe } from 'vitest';
import { managerTest } from './manager/managers.ts';
import { markers } from './once/markers.ts';
import { ticks } from './once/ticks.ts';
import type { OpenClient } from './stores/store-client.ts';

/**
 * Tests what `LockManager.once` guarantees on a store that has markers.
 * @param open opens another client of the same store; the store may have other users
 */
export function onceContract(name: string, open: OpenClient): void {
  const test = managerTest(open);
  describe(`LockManager.once on ${name}:`, () => {
    for (const part of [markers, ticks]) part(test);
  });
}
