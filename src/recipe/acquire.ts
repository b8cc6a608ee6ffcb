import { Scope } from '../cancellation.ts';
import { createDebug } from '../debug.ts';
import { EtcdWatchTimedOut } from '../errors.ts';
import { Deadline } from '../time.ts';
import type { Attempt } from './attempt.ts';
import { type Contest, contend } from './contend.ts';
import { lost } from './entries/lost.ts';
import { registerOwn, unregisterOwn } from './entries/own-entries.ts';
import { Lease, type RenewalObserver } from './lease.ts';
import type { LeaveOptions, OwnEntry, Ticket } from './store.ts';

const debug = createDebug('lock');

/** Seconds to wait for the release of an entry; after that, the release continues in the background. */
const GRACE = 1;
/** Like {@link GRACE}, but after the caller's timeout has passed: the caller should not have to wait much longer. */
const GRACE_AFTER_TIMEOUT = 0.3;

/** What {@link acquire} needs to know about the lock and the entry. */
export interface Acquisition extends Omit<Contest, 'lease'> {
  /** TTL of the entry in seconds; null: the entry never expires. */
  readonly ttl: number | null;
  /** Seconds by which the clocks of the cluster's members may differ; undefined: {@link defaultMargin}. */
  readonly margin: number | undefined;
  /** Whether to renew the entry every TTL/3, while waiting and while holding. */
  readonly keepAlive: boolean;
  readonly renewals?: RenewalObserver | undefined;
  /** The lease of the present hold, if this lock is held already. */
  readonly lease?: Lease | undefined;
  /** Called once the own entry is in the queue, with its lease. */
  readonly onEntered?: (lease: Lease) => void;
}

/** The outcome of {@link acquire}. */
export interface Acquired {
  readonly lease: Lease;
  /** undefined if another entry holds the lock and the attempt must not wait. The own entry then stays in the queue. */
  readonly fencingToken: bigint | undefined;
}

/**
 * Enters the queue and waits until the lock is held. Used by both `Lock` and `LockManager`.
 * @throws the reason why the attempt ended early, or else the error of a request. Before it throws, it removes the entry with
 * {@link giveUp}, unless the attempt had ended before the call.
 */
export async function acquire(acquisition: Acquisition, attempt: Attempt): Promise<Acquired> {
  const { ticket, ttl, margin, keepAlive, renewals, onEntered } = acquisition;
  let { lease } = acquisition;
  attempt.assertActive();
  lease?.rest();
  // The next write may shorten the TTL, and the store may commit it even if the answer is lost.
  lease?.limit(ttl);
  try {
    const entry = await enter(acquisition, attempt, lease);
    attempt.assertActive();
    lease = leaseFor(ticket, entry, lease, margin);
    attempt.abortWith(lease.loss);
    if (keepAlive) lease.keepAlive(renewals);
    onEntered?.(lease);
    const fencingToken = await contend({ ...acquisition, lease }, attempt);
    attempt.assertActive();
    if (fencingToken !== undefined) lease.watch();
    return { lease, fencingToken };
  } catch (error) {
    const reason = attempt.explain(error);
    lease?.lose(reason);
    await giveUp(ticket, { why: reason });
    throw reason;
  }
}

interface GiveUpOptions extends Pick<LeaveOptions, 'until'> {
  /** The error because of which the entry is removed, if any. After a timeout the wait is shorter. */
  readonly why?: unknown;
}

/**
 * Removes the own entry, or leaves it to expire at `until`. Waits at most {@link GRACE} seconds. Resolves to undefined if that is
 * done, otherwise to the error that prevented it; the work then continues in the background.
 */
export async function giveUp(ticket: Ticket, { why, until }: GiveUpOptions = {}): Promise<unknown> {
  const grace = why instanceof EtcdWatchTimedOut ? GRACE_AFTER_TIMEOUT : GRACE;
  const scope = new Scope().abortAt(
    Deadline.after(grace),
    () => new Error(`the entry in ${ticket.path} was not released within ${grace} s`),
  );
  try {
    const kept = until?.passed ? undefined : until;
    await ticket.leave({ signal: scope, until: kept });
    if (!kept) unregisterOwn(ticket);
    return undefined;
  } catch (error) {
    debug('%s: release continues in the background: %s', ticket.path, error);
    return error;
  } finally {
    scope.dispose();
  }
}

async function enter(
  { ticket, ttl, keepAlive }: Acquisition,
  { signal, retry }: Attempt,
  lease: Lease | undefined,
): Promise<OwnEntry> {
  for (;;) {
    const entry = await retry((failed) => {
      registerOwn(ticket, ttl);
      return ticket.enter(ttl, { signal, failed, keepAlive });
    });
    if (entry) return entry;
    lease?.lose(lostLease(lease));
  }
}

/** Extends the present lease if its entry was renewed, so that its signal reports later losses too. Else returns a new lease. */
function leaseFor(ticket: Ticket, entry: OwnEntry, present: Lease | undefined, margin: number | undefined): Lease {
  if (present?.valid && present.entry.key === entry.key && present.entry.rank === entry.rank) {
    present.extend(entry);
    return present;
  }
  present?.lose(lostLease(present));
  return new Lease(ticket, entry, margin);
}

const lostLease = ({ entry }: Lease): Error => lost(entry, entry.clusterId, 'its key is gone');
