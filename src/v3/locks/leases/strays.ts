import { createDebug } from '../../../base/debug.ts';
import type { LockRequests } from '../../rpc/requests.ts';
import type { LeaseUser } from './lease-users.ts';

const debug = createDebug('lease');

/**
 * Removes the entries of a lease that no ticket has. A proxy may carry out a copy of an append after the removal of its entry. Other
 * entries would keep the lease alive, and with it such an entry, which would block its lock. Never rejects.
 * @param users the tickets whose entries are attached to the lease, or may be
 */
export async function removeStrays(
  requests: LockRequests,
  lease: string,
  users: { keys(): Iterable<LeaseUser> },
): Promise<void> {
  const call = { background: true };
  const isUsed = (key: string): boolean => Array.from(users.keys()).some((user) => user.key === key);
  try {
    for (const key of await requests.leases.keysOf(lease, call)) {
      if (isUsed(key)) continue;
      const { own: stray } = await requests.entries.get(key, call);
      // If a ticket has appended it since, that ticket uses the lease by now.
      if (stray?.lease === lease && !isUsed(key)) await requests.entries.remove(key, stray, call);
    }
  } catch (error) {
    debug('lease %s: its entries were not compared: %s', lease, error);
  }
}
