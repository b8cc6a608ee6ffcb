import { EtcdLockLimitDiffers } from '../../errors.ts';
import type { Entry } from '../store.ts';
import { claimOf } from './entry-value.ts';
import { describeHolder, holderOf } from './holder.ts';

/**
 * Checks that an entry with this limit may be in a queue together with these entries. Entries without a limit may be.
 * @param path directory of the queue
 * @throws {EtcdLockLimitDiffers} if one of the entries has another limit
 */
export function checkLimits(path: string, entries: readonly Entry[], limit: number | undefined): void {
  if (limit === undefined) return;
  const other = entries.find(({ value }) => (claimOf(value).limit ?? limit) !== limit);
  if (!other) return;
  const holder = holderOf(path, other);
  throw new EtcdLockLimitDiffers(
    `limit must be ${holder.limit}, as for ${describeHolder(holder)} in ${path}, got ${limit}`,
    {
      holder,
    },
  );
}
