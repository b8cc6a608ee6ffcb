import { ignore, orAborted, Scope } from '../../../base/cancellation.ts';
import type { Deadline } from '../../../base/time.ts';
import type { LockRequests } from '../../rpc/requests.ts';
import { EtcdLease } from './lease.ts';
import type { LeasePool } from './lease-users.ts';

/** The leases of one client: one for each TTL, shared by all entries that are kept alive. */
export class Leases implements LeasePool {
  failedGrants = 0;
  readonly #requests: LockRequests;
  readonly #shared = new Map<number, EtcdLease>();
  readonly #revocations = new Set<Promise<void>>();

  constructor(requests: LockRequests) {
    this.#requests = requests;
  }

  addRevocation(ended: Promise<void>): void {
    this.#revocations.add(ended);
    void ended.then(() => this.#revocations.delete(ended));
  }

  /** Revokes all leases without entries. Waits for that, at most until the deadline. */
  async settle(until: Deadline): Promise<void> {
    for (const lease of this.#shared.values()) lease.retire();
    this.#shared.clear();
    const scope = new Scope().abortAt(until, () => undefined);
    await orAborted(Promise.all(this.#revocations), scope).catch(ignore);
    scope.dispose();
  }

  /** Returns the lease that all renewed entries with this TTL share. */
  shared(ttl: number): EtcdLease {
    const known = this.#shared.get(ttl);
    if (known?.takesEntries) return known;
    known?.retire();
    const lease = new EtcdLease(this.#requests, this, ttl, true);
    this.#shared.set(ttl, lease);
    return lease;
  }

  /** Returns a new lease for one entry. */
  single(ttl: number): EtcdLease {
    return new EtcdLease(this.#requests, this, ttl, false);
  }
}
