import { Scope } from '../cancellation.ts';
import { createDebug } from '../debug.ts';
import { EtcdWatchTimedOut } from '../errors.ts';
import { Deadline } from '../time.ts';
import type { Attempt } from './attempt.ts';
import { type Contest, contend } from './contend.ts';
import { Lease } from './lease.ts';
import { lost } from './lost.ts';
import type { OwnEntry, Ticket } from './store.ts';

const debug = createDebug('lock');

/** Seconds to wait for the removal of an entry before that continues in the background. */
const GRACE = 1;
/** The same after a timeout of the caller's, which has passed already. */
const GRACE_AFTER_TIMEOUT = 0.3;

export interface Acquisition extends Omit<Contest, 'lease'> {
  /** Seconds; null: the entry never expires. */
  readonly ttl: number | null;
  /** Seconds by which the clocks of the cluster's members may differ; undefined: the default. */
  readonly margin: number | undefined;
  /** Whether to renew the entry every TTL/3, while waiting and while holding. */
  readonly keepAlive: boolean;
  /** Of the present hold, if the lock is held already. */
  readonly lease?: Lease | undefined;
  /** Called once the own entry is in the queue. */
  readonly onEntered?: (entry: OwnEntry) => void;
}

/** The outcome of {@link acquire}. */
export interface Acquired {
  readonly lease: Lease;
  /** undefined: the lock is taken and the attempt must not wait. The own entry is in the queue all the same. */
  readonly fencingToken: bigint | undefined;
}

/**
 * Enters the queue and waits until the lock is held. The frame that `Lock` and `LockManager` share.
 * @throws what ended the attempt, or the error met. The entry is given up then; see {@link giveUp}.
 */
export async function acquire(acquisition: Acquisition, attempt: Attempt): Promise<Acquired> {
  const { ticket, ttl, margin, keepAlive, onEntered } = acquisition;
  let { lease } = acquisition;
  attempt.assertActive();
  lease?.rest();
  // The next write may shorten the TTL, and be carried out though its answer is lost.
  lease?.limit(ttl);
  try {
    const entry = await enter(ticket, ttl, attempt, lease);
    attempt.assertActive();
    lease = leaseFor(ticket, entry, lease, margin);
    attempt.abortWith(lease.loss);
    if (keepAlive) lease.keepAlive();
    onEntered?.(entry);
    const fencingToken = await contend({ ...acquisition, lease }, attempt);
    attempt.assertActive();
    return { lease, fencingToken };
  } catch (error) {
    const reason = attempt.explain(error);
    lease?.lose(reason);
    await giveUp(ticket, reason);
    throw reason;
  }
}

/**
 * Removes the own entry. Resolves within a moment: to undefined once the entry is gone, else to why it could not be removed
 * yet; then the removal continues in the background.
 * @param why the entry is given up, if because of an error
 */
export async function giveUp(ticket: Ticket, why?: unknown): Promise<unknown> {
  const grace = why instanceof EtcdWatchTimedOut ? GRACE_AFTER_TIMEOUT : GRACE;
  const scope = new Scope().abortAt(Deadline.after(grace), () => new Error(`not removed within ${grace} s`));
  try {
    await ticket.leave({ signal: scope });
    return undefined;
  } catch (error) {
    debug('%s: removal continues in the background: %s', ticket.path, error);
    return error;
  } finally {
    scope.dispose();
  }
}

async function enter(
  ticket: Ticket,
  ttl: number | null,
  { signal, retry }: Attempt,
  lease: Lease | undefined,
): Promise<OwnEntry> {
  for (;;) {
    const entry = await retry((failed) => ticket.enter(ttl, { signal, failed }));
    if (entry) return entry;
    lease?.lose(lostLease(lease));
  }
}

/** A lease whose entry was renewed is extended, so that whoever has its signal is notified of a later loss. */
function leaseFor(ticket: Ticket, entry: OwnEntry, present: Lease | undefined, margin: number | undefined): Lease {
  if (present?.valid && present.entry.key === entry.key) {
    present.extend(entry);
    return present;
  }
  present?.lose(lostLease(present));
  return new Lease(ticket, entry, margin);
}

const lostLease = ({ entry }: Lease): Error => lost(entry, entry.clusterId, 'its key is gone');
