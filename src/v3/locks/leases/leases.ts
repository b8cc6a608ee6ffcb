import { ignore, orAborted, Scope } from '../../../base/cancellation.ts';
import type { Deadline } from '../../../base/time.ts';
import { EtcdException } from '../../../errors.ts';
import type { Granted } from '../../rpc/leases.ts';
import type { LockRequests } from '../../rpc/requests.ts';
import { enterTimeout } from '../timing.ts';
import { EtcdLease } from './lease.ts';
import type { LeasePool, LeaseUser } from './lease-users.ts';

/** Maximum number of free leases that a client keeps. */
const MOST_FREE = 64;

/**
 * The leases of one client: one for each TTL, shared by all entries that are kept alive, and one for each other entry with a TTL. When
 * that entry is removed, its lease is free, and serves the next such entry. This is safe:
 * - The entry was certainly removed, and no request of this process can attach it again: see {@link isFreed}.
 * - The lease is kept alive before it is used, and the TTL counts from then. If it is gone, the keep-alive or the append says so.
 * - A former leader may keep it alive in vain. The append is then answered in a later raft term: see {@link EtcdLease.isConfirmedBy}.
 * - A proxy may carry out a copy of the earlier append. {@link Strays} removes such an entry within a TTL, or it expires with the lease.
 */
export class Leases implements LeasePool {
  readonly #requests: LockRequests;
  readonly #shared = new Map<number, EtcdLease>();
  /** Number of tries since the last success that did not create a lease in time. */
  failedGrants = 0;
  /** The one that was used last is the last one. One that nobody uses for its TTL expires. */
  #free: readonly EtcdLease[] = [];
  readonly #revocations = new Set<Promise<void>>();

  constructor(requests: LockRequests) {
    this.#requests = requests;
  }

  async grant(id: string, ttl: number, background: boolean | undefined): Promise<Granted> {
    const failed = this.failedGrants;
    const call = { repeat: 'safe', background, attemptTimeout: enterTimeout(failed) } as const;
    try {
      const granted = await this.#requests.leases.grant(id, ttl, call);
      this.failedGrants = 0;
      return granted;
    } catch (error) {
      const isLate = error instanceof EtcdException && error.outcomeUnknown;
      // Several leases may fail at the same time: that is one try.
      if (isLate && this.failedGrants === failed) this.failedGrants += 1;
      throw error;
    }
  }

  addRevocation(ended: Promise<void>): void {
    this.#revocations.add(ended);
    void ended.then(() => this.#revocations.delete(ended));
  }

  /** Revokes all leases without entries. Waits for that, at most until the deadline. */
  async settle(until: Deadline): Promise<void> {
    for (const lease of [...this.#shared.values(), ...this.#free]) lease.retire();
    this.#shared.clear();
    this.#free = [];
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

  /** Call this when the user's entry was removed and nothing can attach it again: a lease of one entry then serves the next one. */
  free(lease: EtcdLease, user: LeaseUser): void {
    this.#free = this.#free.filter(({ isAlive }) => isAlive);
    const hasRoom = this.#free.length < MOST_FREE && !this.#requests.gateway.pending.closing.aborted;
    if (lease.isShared || !lease.takesEntries || !hasRoom) lease.remove(user);
    else {
      lease.free(user);
      this.#free = [...this.#free, lease];
    }
  }

  /** Returns a lease for one entry: a free one, or a new one. */
  single(ttl: number): EtcdLease {
    const free = this.#free.findLast((lease) => lease.ttl === ttl && lease.isAlive);
    if (!free) return this.fresh(ttl);
    this.#free = this.#free.filter((lease) => lease !== free);
    return free;
  }

  /** Returns a new lease for one entry. */
  fresh(ttl: number): EtcdLease {
    return new EtcdLease(this.#requests, this, ttl, false);
  }
}
