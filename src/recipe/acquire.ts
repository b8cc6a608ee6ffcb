import { ignore, orAborted, Scope } from '../base/cancellation.ts';
import { createDebug } from '../base/debug.ts';
import { Deadline } from '../base/time.ts';
import type { Attempt } from './attempt.ts';
import { type Contest, contend } from './contend.ts';
import { lost } from './entries/lost.ts';
import { registerOwn } from './entries/own-entries.ts';
import { giveUp } from './give-up.ts';
import { Lease, type RenewalObserver } from './lease.ts';
import type { Leaving } from './leaving.ts';
import type { OwnEntry, Ticket } from './store.ts';

const debug = createDebug('lock');

/** Maximum seconds to wait until the entry of an ended hold is replaced. The release of that hold waits for this too. */
const REPLACE_WITHIN = 1;

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
  /** The entry of an ended hold, which the own entry may replace. */
  readonly leaving?: Leaving | undefined;
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
  lease?.stopRenewing();
  // The next write may shorten the TTL, and the store may commit it even if the answer is lost.
  lease?.shortenTo(ttl);
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
    await giveUp(ticket, { deadline: attempt.deadline });
    throw reason;
  }
}

async function enter(acquisition: Acquisition, attempt: Attempt, lease: Lease | undefined): Promise<OwnEntry> {
  const { ticket, ttl, keepAlive, leaving } = acquisition;
  const { signal, retry } = attempt;
  const replacing = leaving && (await replace(leaving, acquisition, attempt));
  if (replacing) return replacing;
  for (;;) {
    const entry = await retry((failed) => {
      registerOwn(ticket, ttl);
      return ticket.enter(ttl, { signal, failed, keepAlive });
    });
    if (entry) return entry;
    lease?.lose(lostLease(lease));
  }
}

/** Enters the queue and removes the `leaving` entry in one step. Resolves to undefined if that entry is gone, or on failure. */
async function replace(
  leaving: Leaving,
  { ticket, ttl, keepAlive }: Acquisition,
  { signal }: Attempt,
): Promise<OwnEntry | undefined> {
  if (leaving.isSettled) return undefined;
  const late = () => new Error(`no entry in ${ticket.path} was replaced within ${REPLACE_WITHIN} s`);
  const scope = new Scope(signal).abortAt(Deadline.after(REPLACE_WITHIN), late);
  try {
    registerOwn(ticket, ttl);
    return await ticket.enter(ttl, { signal: scope, failed: 0, keepAlive, replacing: leaving.ticket });
  } catch (error) {
    // If the error is permanent, the next try to enter throws it.
    debug('entry in %s not replaced: %s', leaving.ticket.path, error);
    return undefined;
  } finally {
    scope.dispose();
    // An attempt that has ended does not enter again, so it need not wait for the removal.
    await orAborted(leaving.settle(), signal).catch(ignore);
  }
}

/** Returns the lease of `entry`. Extends the present lease if it is of this entry: then its signal also reports later losses. */
function leaseFor(ticket: Ticket, entry: OwnEntry, present: Lease | undefined, margin: number | undefined): Lease {
  if (present?.valid && present.entry.key === entry.key && present.entry.rank === entry.rank) {
    present.extend(entry);
    return present;
  }
  present?.lose(lostLease(present));
  return new Lease(ticket, entry, margin);
}

const lostLease = ({ entry }: Lease): Error => lost(entry, entry.clusterId, 'its key is gone');
