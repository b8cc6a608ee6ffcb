import type { CallOptions, KeysApi } from '../v2/keys-api.ts';
import { remove } from '../v2/locks/entry.ts';
import type { Contender, Queue } from '../v2/locks/queue.ts';

/**
 * Removes what processes that are gone left in the queue. Resolves to whether it found such entries: then the queue has to
 * be read anew, since one that became another's meanwhile is still there, and stands in the way.
 */
export async function removeLeftOvers(
  keys: KeysApi,
  { entries }: Queue,
  isLeftOver: (entry: Contender) => boolean,
  options: CallOptions,
): Promise<boolean> {
  const leftOver = entries.filter(isLeftOver);
  for (const { key, value, modifiedIndex } of leftOver)
    await remove(keys, { key, uuid: value, modifiedIndex }, options);
  return leftOver.length > 0;
}
