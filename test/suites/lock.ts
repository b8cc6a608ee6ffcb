import { describe } from 'vitest';
import type { OpenKeys } from './keys-api/store.ts';
import { holding } from './lock/holding.ts';
import { identity } from './lock/identity.ts';
import { lockTest } from './lock/locks.ts';
import { taking } from './lock/taking.ts';
import { waysOut } from './lock/ways-out.ts';

/**
 * What `Lock` promises on any `KeysApi`.
 * @param open opens one more client of the same store; the store may have other users
 */
export function lockContract(name: string, open: OpenKeys): void {
  const test = lockTest(open);
  describe(`Lock on ${name}:`, () => {
    for (const part of [taking, waysOut, holding, identity]) part(test);
  });
}
