import { EtcdLockExpired } from '../../errors.ts';
import { identityOf, leaseEnded, lost } from '../../recipe/entries/lost.ts';
import type { OwnEntry } from '../../recipe/store.ts';
import type { Neighbours } from '../rpc/entry.ts';
import type { LockRequests } from '../rpc/requests.ts';
import { EXPLAIN_LOSS_WITHIN } from './timing.ts';

/** Returns the error that says why the own entry is lost, if the answer shows that. */
export function whyLost(
  own: OwnEntry,
  { own: present, clusterId }: Pick<Neighbours, 'own' | 'clusterId'>,
): Error | undefined {
  if (clusterId !== own.clusterId) return lost(own, clusterId, '');
  if (!present) return lost(own, clusterId, 'its key is gone');
  if (present.rank !== own.rank || present.value !== own.value)
    return lost(own, clusterId, 'its key was re-created, or has another value');
  return undefined;
}

/** @throws the error that says why the own entry is lost, if the answer shows that */
export function checkPresent(own: OwnEntry, read: Pick<Neighbours, 'own' | 'clusterId'>): void {
  const why = whyLost(own, read);
  if (why) throw why;
}

/** An own entry, with the id of its lease. */
interface LeasedEntry {
  readonly own: OwnEntry;
  readonly lease: string | undefined;
}

/**
 * Whether an own entry was lost that another process with the same identity may have evicted. The end of its lease is the other
 * possible reason: etcd may revoke the lease of a live process.
 */
export const isUnexplained = ({ own, lease }: LeasedEntry, error: unknown): boolean =>
  error instanceof EtcdLockExpired && !error.isEndedByStore && lease !== undefined && identityOf(own) !== undefined;

/**
 * Returns the error for the loss of an own entry. An eviction removes the key alone, so if the lease is gone, too, the store has ended
 * the entry. Reads the lease if the reason is not known; if that fails, returns `error`.
 */
export async function explained<E>(
  requests: LockRequests,
  { own, lease }: LeasedEntry,
  error: E,
): Promise<E | EtcdLockExpired> {
  if (lease === undefined || !isUnexplained({ own, lease }, error)) return error;
  const limits = { timeout: EXPLAIN_LOSS_WITHIN, attemptTimeout: EXPLAIN_LOSS_WITHIN / 2 };
  try {
    return (await requests.leases.grantedTo(lease, limits)) === undefined ? leaseEnded(own) : error;
  } catch {
    return error;
  }
}
