import { sleep } from '../base/cancellation.ts';
import { createDebug } from '../base/debug.ts';
import { Backoff } from '../base/time.ts';
import type { Attempt } from './attempt.ts';
import { claimOf } from './entries/entry-value.ts';
import { evictLeftovers, type IsLeftover } from './entries/leftovers.ts';
import { checkLimits } from './entries/limits.ts';
import type { Lease } from './lease.ts';
import type { Entry, QueueStore, Standing, Ticket } from './store.ts';

const debug = createDebug('lock');

/** What {@link contend} needs to know about the queue and the own entry. */
export interface Contest {
  readonly queue: QueueStore;
  /** The ticket of the own entry, which is in the queue. */
  readonly ticket: Ticket;
  readonly lease: Lease;
  /** Chooses the entries before the own one that are evicted as leftovers. */
  readonly isLeftover?: IsLeftover | undefined;
  /** Called with the first standing of the own entry. */
  readonly onQueued?: ((standing: Standing) => void) | undefined;
}

/**
 * Waits until the own entry holds the lock. The recipe: read which entry the own one waits for, wait until that entry may have
 * changed, and read again.
 *
 * Resolves to the fencing token once a read has shown, before the lease's deadline, that the own entry holds the lock. Resolves
 * to undefined if another entry holds the lock and the attempt must not wait.
 * @throws {EtcdLockExpired} when the own entry is lost
 * @throws {EtcdLockLimitDiffers} when an entry before the own one has another limit
 * @throws {EtcdClusterIdChanged} when another cluster answers
 */
export async function contend(
  { queue, ticket, lease, isLeftover, onQueued }: Contest,
  attempt: Attempt,
): Promise<bigint | undefined> {
  const { signal } = attempt;
  const { limit } = claimOf(ticket.value);
  const backoff = new Backoff();
  const read = async (latest: boolean): Promise<Standing> => {
    const standing = await ticket.standing({ signal, latest });
    attempt.saw(standing.first, lease.entry.key);
    if (standing.own) lease.update(standing.own);
    return standing;
  };
  const readAhead = async (): Promise<readonly Entry[]> => {
    const inOrder = (await queue.read({ signal })).inOrder();
    return inOrder.slice(
      0,
      Math.max(
        inOrder.findIndex(({ key }) => key === lease.entry.key),
        0,
      ),
    );
  };
  const evictAhead = async ({ ahead }: Standing, leftovers: IsLeftover): Promise<boolean> =>
    evictLeftovers(queue, ahead ? ahead() : await readAhead(), leftovers, { signal });
  let isKnown = false;
  const readStanding = async (): Promise<Pick<Standing, 'behind' | 'fencingToken'>> => {
    let standing = await read(false);
    if (isLeftover && (await evictAhead(standing, isLeftover))) standing = await read(true);
    if (standing.ahead && limit !== undefined) checkLimits(ticket.path, standing.ahead(), limit);
    if (!isKnown) onQueued?.(standing);
    isKnown = true;
    const { behind, fencingToken } = standing;
    return { behind, fencingToken };
  };
  for (;;) {
    const { behind, fencingToken } = await attempt.retry(readStanding);
    lease.assertValid();
    if (!behind) return fencingToken;
    if (!attempt.blocking) return undefined;
    debug('%s waits for %s', lease.entry.key, behind.key);
    if (await ticket.changed(behind, { signal })) backoff.reset();
    else await sleep(backoff.next(), signal);
  }
}
