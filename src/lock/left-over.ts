import type { CallOptions, KeysApi } from '../keys/api.ts';
import { remove } from './entry.ts';
import type { Contender, Queue } from './queue.ts';

/** Removes what processes that are gone left in the queue; resolves to the queue without it. */
export async function withoutLeftOvers(
  keys: KeysApi,
  queue: Queue,
  isLeftOver: (entry: Contender) => boolean,
  options: CallOptions,
): Promise<Queue> {
  const leftOver = queue.entries.filter(isLeftOver);
  for (const { key, value, modifiedIndex } of leftOver)
    await remove(keys, { key, uuid: value, modifiedIndex }, options);
  return { ...queue, entries: queue.entries.filter((entry) => !leftOver.includes(entry)) };
}
