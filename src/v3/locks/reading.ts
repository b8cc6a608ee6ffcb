import { show } from '../../base/checks.ts';
import { checkName } from '../../recipe/option-checks.ts';
import type { Entry, Queue } from '../../recipe/store.ts';
import type { V3Entry } from '../rpc/entry.ts';
import { keyPrefixOf } from '../rpc/keys.ts';

/** In bytes: as on etcd v2, so that a name is valid on both. */
const MAX_NAME_LENGTH = 750;

/**
 * Names are not normalised: other programs choose them, too. But whoever gives a name with a "/" first means a whole key, which is a name
 * below an empty prefix.
 * @throws {TypeError | RangeError} if the name is invalid
 */
export function checkLockName(lockPrefix: string, lock: string): void {
  checkName('lock name', lock, MAX_NAME_LENGTH);
  if (lockPrefix === '' || !lock.startsWith('/')) return;
  throw new RangeError(
    `lock name must not begin with "/" below the lockPrefix ${show(lockPrefix)}, got ${show(lock)}: with an empty lockPrefix, it is used as it is`,
  );
}

/**
 * Returns the path of the queue of a lock: the keys of its entries begin with the path and a "/".
 * @throws {TypeError | RangeError} if the name is invalid
 */
export function queuePath(lockPrefix: string, lock: string): string {
  checkLockName(lockPrefix, lock);
  return keyPrefixOf(lockPrefix) + lock;
}

/** Returns the entries in the order in which they are served. */
export const inOrder = <E extends Entry>(entries: readonly E[]): readonly E[] =>
  [...entries].sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : a.key < b.key ? -1 : 1));

/** A queue whose entries are all of one lock. */
export const queueOf = (entries: readonly V3Entry[]): Queue => ({ entries, inOrder: () => inOrder(entries) });

/**
 * Returns the entries of each queue by the name of its lock, in the order of the names.
 * @param start the prefix of all keys; see {@link keyPrefixOf}
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
