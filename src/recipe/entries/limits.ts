import { EtcdLockLimitDiffers } from '../../errors.ts';
import type { Entry } from '../store.ts';
import { claimOf } from './entry-value.ts';
import { describeOwner, holderOf } from './holder.ts';

/**
 * Checks that an entry with this limit may be in a queue behind these entries. The first of them that has a limit sets it for all: the
 * client of a later entry with a different limit removes that entry itself.
 * @param path directory of the queue
 * @param entries in any order
 * @throws {EtcdLockLimitDiffers} if the first entry that has a limit has a different limit
 */
export function checkLimits(path: string, entries: readonly Entry[], limit: number | undefined): void {
  if (limit === undefined) return;
  let other: Entry | undefined;
  for (const entry of entries)
    if (claimOf(entry.value).limit !== undefined && (!other || entry.rank < other.rank)) other = entry;
  if (!other || claimOf(other.value).limit === limit) return;
  const holder = holderOf(path, other);
  const change = `to change the limit, end all requests with ${holder.limit}, or ask again after their end`;
  throw new EtcdLockLimitDiffers(
    `limit must be ${holder.limit}, as for ${describeOwner(holder)} in ${path}, got ${limit}; ${change}`,
    { holder },
  );
}
