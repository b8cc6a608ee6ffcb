import { describe } from 'vitest';
import type { OpenKeys } from './keys-api/store.ts';
import { asyncContext } from './lock/async-context.ts';
import { exits } from './lock/exits.ts';
import { holding } from './lock/holding.ts';
import { identity } from './lock/identity.ts';
import { type LockTest, lockTest } from './lock/locks.ts';
import { taking } from './lock/taking.ts';
import { onV2 } from './lock/v2.ts';
import type { OpenClient } from './stores/store-client.ts';
import { v2StoreClient } from './stores/v2-store-client.ts';

type Part = (test: LockTest) => void;

const ON_ANY_STORE: readonly Part[] = [taking, exits, holding, identity, asyncContext];

/**
 * Tests what `Lock` guarantees on any store.
 * @param open opens another client of the same store; the store may have other users
 */
export function lockContract(name: string, open: OpenClient, parts = ON_ANY_STORE): void {
  const test = lockTest(open);
  describe(`Lock on ${name}:`, () => {
    for (const part of parts) part(test);
  });
}

/** Tests the same on a store behind a `KeysApi`, and what only etcd v2 guarantees. */
export function lockContractOnV2(name: string, open: OpenKeys): void {
  lockContract(name, async () => v2StoreClient(await open()), [...ON_ANY_STORE, (test) => onV2(test, open)]);
}
