import { detached } from '../../../base/async-context.ts';
import { createDebug } from '../../../base/debug.ts';
import { now } from '../../../base/time.ts';
import type { LeaseRenewal } from '../../rpc/leases.ts';
import type { LockRequests } from '../../rpc/requests.ts';
import { STRAY_FOR } from '../timing.ts';
import type { LeaseUsers } from './lease-users.ts';

const debug = createDebug('lease');

/**
 * Removes the entries of a lease that no ticket has. A proxy may carry out a copy of an append after the removal of its entry. Other
 * entries would keep the lease alive, and with it such an entry, which would block its lock.
 */
export class Strays {
  readonly #lease: string;
  readonly #users: LeaseUsers;
  #comparedAt = now();

  /** @param users the tickets whose entries are attached to the lease, or may be */
  constructor(lease: string, users: LeaseUsers) {
    this.#lease = lease;
    this.#users = users;
  }

  /** Call this after each renewal. Looks for strays once per TTL, or once in {@link STRAY_FOR}, in the background. */
  renewed(requests: LockRequests, { granted }: LeaseRenewal): void {
    if (now() < this.#comparedAt + Math.min(granted, STRAY_FOR) * 1000) return;
    this.#comparedAt = now();
    void detached(() => this.#remove(requests)).catch((error: unknown) => {
      debug('lease %s: its entries were not compared: %s', this.#lease, error);
    });
  }

  async #remove({ leases, entries }: LockRequests): Promise<void> {
    const call = { background: true };
    const keys = await leases.keysOf(this.#lease, call);
    const { keys: used } = this.#users;
    for (const key of keys.filter((key) => !used.has(key))) {
      const { own: stray } = await entries.get(key, call);
      // If a ticket has appended it since, that ticket uses the lease by now.
      if (stray?.lease === this.#lease && !this.#users.keys.has(key)) await entries.remove(key, stray, call);
    }
  }
}
