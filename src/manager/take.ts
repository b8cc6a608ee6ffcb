import { type Acquired, acquire, giveUp } from '../recipe/acquire.ts';
import type { Attempt } from '../recipe/attempt.ts';
import { formatValue, type LockMode } from '../recipe/entry-value.ts';
import { alive, evictLeftovers, type IsLeftover, leftoversOf } from '../recipe/leftovers.ts';
import { blocks } from '../recipe/rules.ts';
import type { OwnEntry, QueueStore } from '../recipe/store.ts';
import { freshUuid } from '../recipe/uuid.ts';
import type { CheckedRequest } from './options.ts';

/** A lock acquired with a fresh entry. The entry is renewed until the lease is stopped. */
export type Taken = Pick<Acquired, 'lease'> & { readonly fencingToken: bigint };

/**
 * Acquires the lock with a fresh entry. Resolves to undefined if the lock is taken and the request must not wait. Removes the
 * entry unless the lock was acquired.
 * @param onEntered called once the entry is in the queue
 */
export async function take(
  queue: QueueStore,
  attempt: Attempt,
  { mode, identity, ttl, margin, blocking }: CheckedRequest,
  onEntered: (entry: OwnEntry) => void,
): Promise<Taken | undefined> {
  attempt.assertActive();
  const isLeftover = leftoversOf(identity);
  // A request that must not wait reads the queue first: its entry could make other such requests find the lock taken.
  if (!blocking && (await isTaken(queue, attempt, mode, isLeftover))) return undefined;
  const ticket = queue.ticket(formatValue({ mode, identity, uuid: freshUuid() }));
  alive.add(ticket.value);
  let taken: Taken | undefined;
  try {
    const acquisition = { queue, ticket, mode, isLeftover, ttl, margin, keepAlive: true, onEntered };
    const { lease, fencingToken } = await acquire(acquisition, attempt);
    if (fencingToken !== undefined) taken = { lease, fencingToken };
    else {
      lease.stop();
      await giveUp(ticket);
    }
    return taken;
  } finally {
    if (!taken) alive.delete(ticket.value);
  }
}

async function isTaken(
  queue: QueueStore,
  attempt: Attempt,
  mode: LockMode,
  isLeftover: IsLeftover | undefined,
): Promise<boolean> {
  const { signal } = attempt;
  const read = async () => (await queue.read({ signal })).entries;
  try {
    return await attempt.retry(async () => {
      const entries = await read();
      const evicted = isLeftover && (await evictLeftovers(queue, entries, isLeftover, { signal }));
      return (evicted ? await read() : entries).some((entry) => blocks(entry, mode));
    });
  } catch (error) {
    throw attempt.explain(error);
  }
}
