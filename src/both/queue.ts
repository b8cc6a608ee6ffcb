import { sharedIdOf } from '../recipe/entries/entry.ts';
import { isShared } from '../recipe/entries/entry-value.ts';
import type { Entry, Queue } from '../recipe/store.ts';

/**
 * Merges the two queues of a lock: first the entries on v3, then those on v2 whose client has not entered the queue on v3 yet. A
 * client with an entry in both queues is shown once, by its entry on v2.
 */
export function merged(v2: Queue | undefined, v3: Queue | undefined): Queue {
  const [onV2, onV3] = [v2?.inOrder() ?? [], v3?.inOrder() ?? []];
  const onV2ById = new Map(onV2.map((entry) => [sharedIdOf(entry), entry]));
  const entered = new Set(onV3.map((entry) => onV2ById.get(sharedIdOf(entry))));
  const waiting = onV2.filter((entry) => !entered.has(entry));
  const ahead = onV3.map((entry) => onV2ById.get(sharedIdOf(entry)) ?? entry);
  const entries = [...readersInOrder(ahead, new Map(onV2.map((entry, index) => [entry, index]))), ...waiting];
  return { entries, inOrder: () => entries };
}

/**
 * Returns the entries, with neighbouring shared entries sorted by their order on v2: they enter v3 at the same time, in any order.
 * @param positions each entry's position in the queue on v2
 */
function readersInOrder(entries: readonly Entry[], positions: ReadonlyMap<Entry, number>): Entry[] {
  const ordered: Entry[] = [];
  for (const entry of entries) {
    let at = ordered.length;
    while (at > 0 && isLaterReader(ordered[at - 1], entry, positions)) at -= 1;
    ordered.splice(at, 0, entry);
  }
  return ordered;
}

function isLaterReader(one: Entry | undefined, other: Entry, positions: ReadonlyMap<Entry, number>): boolean {
  if (!one || !isShared(one.value) || !isShared(other.value)) return false;
  const [first, second] = [positions.get(one), positions.get(other)];
  return first !== undefined && second !== undefined && first > second;
}
