import type { Entry, Queue } from '../../recipe/store.ts';
import type { V3Entry } from '../answers.ts';

/** Returns the prefix of the keys of all locks. An empty `lockPrefix` is for lock names that other programs chose. */
export const startOf = (lockPrefix: string): string => (lockPrefix === '' ? '' : `${lockPrefix}/`);

/** Whether a key is an entry of the queue at this path, and not one of a lock whose name begins with this lock's. */
export const isDirectly = (path: string, key: string): boolean =>
  key.startsWith(`${path}/`) && !key.includes('/', path.length + 1);

/** Returns the entries in the order in which they are served. */
export const inOrder = <E extends Entry>(entries: readonly E[]): readonly E[] =>
  [...entries].sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : a.key < b.key ? -1 : 1));

/** A queue whose entries are all of one lock. */
export const queueOf = (entries: readonly V3Entry[]): Queue => ({ entries, inOrder: () => inOrder(entries) });

/**
 * Returns the entries of each queue by the name of its lock, in the order of the names.
 * @param start the prefix of all keys; see {@link startOf}
 */
export function queuesAmong(start: string, entries: readonly V3Entry[]): ReadonlyMap<string, readonly V3Entry[]> {
  const queues = new Map<string, V3Entry[]>();
  for (const entry of entries) {
    const name = entry.key.slice(start.length, Math.max(entry.key.lastIndexOf('/'), start.length));
    const queue = queues.get(name);
    if (queue) queue.push(entry);
    else if (name !== '') queues.set(name, [entry]);
  }
  return new Map([...queues].sort(([one], [other]) => (one < other ? -1 : 1)));
}
