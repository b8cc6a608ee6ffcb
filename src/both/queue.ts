import type { Entry, Queue } from '../recipe/store.ts';

/**
 * Merges the two queues of a lock: first the entries on v3, then those on v2 whose owner has not entered the queue on v3 yet. An
 * entry in both queues is shown once, as it is on v2.
 */
export function merged(v2: Queue | undefined, v3: Queue | undefined): Queue {
  const [onV2, onV3] = [v2?.inOrder() ?? [], v3?.inOrder() ?? []];
  const twins = new Map(onV2.flatMap((entry) => (entry.value === '' ? [] : [[entry.value, entry]])));
  const entered = new Set(onV3.map(({ value }) => value));
  const waiting = onV2.filter((entry) => !(entered.has(entry.value) && twins.get(entry.value) === entry));
  const entries = [...onV3.map((entry) => twins.get(entry.value) ?? entry), ...waiting];
  return { entries, inOrder: () => entries };
}

/** Whether an entry of a queue is this one, or its twin in the other queue. Clients of Go's Mutex have no value. */
export const isTwin = (entry: Entry, { key, value }: Entry): boolean =>
  entry.key === key || (entry.value === value && value !== '');
