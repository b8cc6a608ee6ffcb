import { ignore, sleep } from '../base/cancellation.ts';
import { Backoff } from '../base/time.ts';
import { EtcdLockExpired } from '../errors.ts';
import { type Acquired, type Acquisition, acquire } from '../recipe/acquire.ts';
import type { Attempt } from '../recipe/attempt.ts';
import { type Claim, formatValue } from '../recipe/entries/entry-value.ts';
import { alive, evictLeftovers, type IsLeftover, leftoversOf } from '../recipe/entries/leftovers.ts';
import { checkLimits } from '../recipe/entries/limits.ts';
import { lost } from '../recipe/entries/lost.ts';
import { timedUuid } from '../recipe/entries/uuid.ts';
import { giveUp } from '../recipe/give-up.ts';
import type { Lease } from '../recipe/lease.ts';
import { wouldWait } from '../recipe/rules.ts';
import type { QueueStore, Standing } from '../recipe/store.ts';
import type { Turn } from './local-queue.ts';
import type { CheckedRequest } from './options.ts';
import type { Trace } from './trace.ts';

/** Delays in milliseconds before a request queues up again. They grow, because somebody may remove each new entry immediately. */
export const REQUEUE_AFTER = { first: 100, most: 5_000 };

/** A lock acquired with a fresh entry. The entry is renewed until the lease is stopped. */
export type Taken = Pick<Acquired, 'lease'> & { readonly fencingToken: bigint; readonly uuid: string };

/** A request that has its turn in this process. */
export interface Admitted {
  /** Name of the lock. */
  readonly name: string;
  readonly queue: QueueStore;
  readonly request: CheckedRequest;
  readonly trace: Trace;
  readonly turn: Turn;
}

/**
 * Acquires the lock with a fresh entry. If the entry is lost while waiting, queues up again at the end with another fresh entry.
 * Resolves to undefined if the lock is taken and the request must not wait. Removes its entries unless the lock was acquired.
 */
export async function take({ queue, request, trace, turn }: Admitted, attempt: Attempt): Promise<Taken | undefined> {
  const backoff = new Backoff(REQUEUE_AFTER);
  let lease: Lease | undefined;
  const onEntered = (entered: Lease, uuid: string): void => {
    const { entry } = entered;
    // Tokens of two clusters cannot be compared, so a request does not move from one to another.
    if (lease && lease.entry.clusterId !== entry.clusterId) throw lost(lease.entry, entry.clusterId, '');
    lease = entered;
    trace.enters(entry, uuid);
    turn.queued();
  };
  const onQueued = (standing: Standing): void => trace.queues(standing);
  for (;;) {
    try {
      return await takeOnce(queue, attempt, request, { onEntered, onQueued, renewals: trace, leaving: turn.leaving });
    } catch (error) {
      if (!(error instanceof EtcdLockExpired && lease && mayRequeue(request, lease, error))) throw error;
      attempt.restart();
      attempt.assertActive();
      trace.requeues(error);
    }
    // If the attempt ends during the pause, `takeOnce` throws the reason.
    await sleep(backoff.next(), attempt.signal).catch(ignore);
  }
}

/**
 * Whether a request that lost its entry may queue up again. Not if it has an identity, and the entry was lost before it could
 * expire and not ended by the store: another process with that identity may have evicted it, and the two would evict each other for
 * ever.
 */
const mayRequeue = (
  { blocking, identity }: CheckedRequest,
  { expired }: Lease,
  { isEndedByStore }: EtcdLockExpired,
): boolean => blocking && (identity === undefined || expired || isEndedByStore);

async function takeOnce(
  queue: QueueStore,
  attempt: Attempt,
  request: CheckedRequest,
  {
    onEntered,
    ...hooks
  }: Pick<Acquisition, 'onQueued' | 'renewals' | 'leaving'> & { onEntered(lease: Lease, uuid: string): void },
): Promise<Taken | undefined> {
  const { identity, ttl, margin, blocking } = request;
  attempt.assertActive();
  const isLeftover = leftoversOf(identity);
  // A request that must not wait reads the queue first: its entry could make other such requests find the lock taken.
  if (!blocking && (await isTaken(queue, attempt, request, isLeftover))) return undefined;
  const uuid = timedUuid();
  const value = formatValue(request, uuid);
  const ticket = queue.ticket(value, { isSingleUse: true });
  alive.add(ticket.value);
  let taken: Taken | undefined;
  try {
    const own = { ticket, ttl, margin, keepAlive: true, onEntered: (lease: Lease) => onEntered(lease, uuid) };
    const { lease, fencingToken } = await acquire({ queue, isLeftover, ...own, ...hooks }, attempt);
    if (fencingToken !== undefined) taken = { lease, fencingToken, uuid };
    else {
      lease.stop();
      await giveUp(ticket, { deadline: attempt.deadline });
    }
    return taken;
  } finally {
    if (!taken) alive.delete(ticket.value);
  }
}

async function isTaken(
  queue: QueueStore,
  attempt: Attempt,
  claim: Claim,
  isLeftover: IsLeftover | undefined,
): Promise<boolean> {
  const { signal } = attempt;
  const read = async () => (await queue.read({ signal })).entries;
  try {
    return await attempt.retry(async () => {
      let entries = await read();
      if (isLeftover && (await evictLeftovers(queue, entries, isLeftover, { signal }))) entries = await read();
      checkLimits(queue.path, entries, claim.limit);
      return wouldWait(entries, claim);
    });
  } catch (error) {
    throw attempt.explain(error);
  }
}
