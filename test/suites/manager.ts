import { describe } from 'vitest';
import type { OpenKeys } from './keys-api/store.ts';
import { acquire } from './manager/acquire.ts';
import { available } from './manager/available.ts';
import { identities } from './manager/identity.ts';
import { localQueue } from './manager/local-queue.ts';
import { loss } from './manager/loss.ts';
import { managerTest } from './manager/managers.ts';
import { modes } from './manager/modes.ts';
import { query } from './manager/query.ts';
import { reentrance } from './manager/reentrance.ts';
import { requests } from './manager/requests.ts';
import { tracing } from './manager/tracing.ts';
import { waiting } from './manager/waiting.ts';
import { withLock } from './manager/with-lock.ts';

/**
 * What `LockManager` promises on any `KeysApi`.
 * @param open opens one more client of the same store; the store may have other users
 */
export function managerContract(name: string, open: OpenKeys): void {
  const test = managerTest(open);
  describe(`LockManager on ${name}:`, () => {
    for (const part of [
      requests,
      available,
      waiting,
      loss,
      acquire,
      modes,
      localQueue,
      identities,
      reentrance,
      query,
      withLock,
      tracing,
    ])
      part(test);
  });
}
