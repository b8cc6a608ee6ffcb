import type { Entry, QueueStore, StoreCall } from '../store.ts';
import { parseValue } from './entry-value.ts';

const ALIVE = Symbol.for('etcd-v2-lock.alive');
const registry = globalThis as { [ALIVE]?: Set<string> };
registry[ALIVE] ??= new Set();

/**
 * The values of the entries that requests of this process use now, in any queue: these entries are not leftovers. An entry that
 * was given up is a leftover even if it could not be removed yet; own-entries.ts still has it then. Shared by all copies of this
 * package in the process, because npm may install several.
 */
export const alive = registry[ALIVE];

/** Returns whether an entry was left behind by a process that is gone. */
export type IsLeftover = (entry: Entry) => boolean;

/** Returns a predicate that accepts entries of an earlier process with this identity; undefined without an identity. */
export const leftoversOf = (identity: string | undefined): IsLeftover | undefined =>
  identity === undefined ? undefined : ({ value }) => parseValue(value).identity === identity && !alive.has(value);

/** Evicts leftovers. Resolves to true if there were any: the caller must then read the queue again. */
export async function evictLeftovers(
  queue: QueueStore,
  entries: readonly Entry[],
  isLeftover: IsLeftover,
  options: StoreCall,
): Promise<boolean> {
  const leftovers = entries.filter(isLeftover);
  for (const entry of leftovers) await queue.evict(entry, options);
  return leftovers.length > 0;
}
