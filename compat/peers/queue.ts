import type { Entry } from '../../src/recipe/store.ts';
import { entriesBelow } from '../../test/support/gateway.ts';
import { until } from '../../test/support/until.ts';

/** Waits until that many entries are in the queue of a lock. */
export const untilQueued = (lock: string, count: number, etcd: string): Promise<Entry[]> =>
  until(
    () => entriesBelow(`${lock}/`, etcd),
    ({ length }) => length === count,
  );
