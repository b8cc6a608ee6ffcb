import { randomBytes } from 'node:crypto';
import { detached } from '../../../base/async-context.ts';
import { ignore, orAborted, Scope } from '../../../base/cancellation.ts';
import { atDeadline, Deadline } from '../../../base/time.ts';
import { mayBeCarriedOut } from '../../../errors.ts';
import type { GatewayCall } from '../../gateway/gateway.ts';
import { type Granted, leaseIdOf } from '../../rpc/leases.ts';
import type { LockRequests } from '../../rpc/requests.ts';
import { enterLimits, STRAY_FOR } from '../timing.ts';
import { EtcdLease } from './lease.ts';
import type { LeasePool, LeaseUser } from './lease-users.ts';

/** Maximum number of free leases that a client keeps. */
const MOST_FREE = 64;

const randomLeaseId = (): string => leaseIdOf(randomBytes(8));

/**
 * The leases of one client: one for each TTL, shared by all entries that are kept alive, and one for each other entry with a TTL. When
 * that entry is removed, its lease is free, and serves the next such entry. This is safe:
 * - The entry was certainly removed, and no request of this process can attach it again: see {@link isFreed}.
 * - The lease is kept alive before it is used, and the TTL counts from then. If it is gone, the keep-alive or the append says so.
 * - A former leader may keep it alive in vain. The append is then answered in a later raft term: see {@link EtcdLease.isConfirmedBy}.
 * - A proxy may carry out a copy of the earlier append. {@link Strays} removes such an entry, or the lease ends, within {@link STRAY_FOR}.
 */
export class Leases implements LeasePool {
  readonly #requests: LockRequests;
  readonly #shared = new Map<number, EtcdLease>();
  /** Number of tries since the last success that did not create a lease in time. All callers of a lease share the try that one began. */
  failedGrants = 0;
  /** Each with a function that stops its timer. The one that was used last is the last one. */
  readonly #free = new Map<EtcdLease, () => void>();
  readonly #revocations = new Set<Promise<void>>();

  constructor(requests: LockRequests) {
    this.#requests = requests;
  }

  async grant(id: string, ttl: number, call: GatewayCall): Promise<Granted> {
    const failed = this.failedGrants;
    try {
      const granted = await this.#requests.leases.grant(id, ttl, { ...enterLimits(failed), ...call });
      this.failedGrants = 0;
      return granted;
    } catch (error) {
      const isLate = mayBeCarriedOut(error);
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
    for (const stop of this.#free.values()) stop();
    for (const lease of [...this.#shared.values(), ...this.#free.keys()]) lease.retire();
    this.#shared.clear();
    this.#free.clear();
    const scope = new Scope().abortAt(until, () => undefined);
    await orAborted(Promise.all(this.#revocations), scope).catch(ignore);
    scope.dispose();
  }

  /** Returns the lease that all renewed entries with this TTL share. */
  shared(ttl: number): EtcdLease {
    const known = this.#shared.get(ttl);
    if (known?.takesEntries) return known;
    known?.retire();
    const lease = new EtcdLease(this.#requests, this, { id: randomLeaseId(), ttl, isShared: true });
    this.#shared.set(ttl, lease);
    return lease;
  }

  /**
   * Call this when the user's entry was removed and nothing can attach it again: a lease of one entry then serves the next one. One that
   * nobody uses expires, or is revoked after {@link STRAY_FOR}.
   */
  free(lease: EtcdLease, user: LeaseUser): void {
    const hasRoom = this.#free.size < MOST_FREE && !this.#requests.gateway.pending.closing.aborted;
    if (lease.isShared || !lease.takesEntries || !hasRoom) lease.remove(user);
    else {
      lease.free(user);
      const unused = Deadline.after(Math.min(lease.granted, STRAY_FOR));
      const stop = detached(() => atDeadline(unused, () => this.#endUnused(lease), { ref: false }));
      this.#free.set(lease, stop);
    }
  }

  /**
   * Returns a lease for one entry: a free one, or a new one.
   * @param newId returns the id of a new lease
   */
  single(ttl: number, newId = randomLeaseId): EtcdLease {
    const lease = [...this.#free.keys()].findLast((free) => free.ttl === ttl && free.isAlive);
    if (!lease) return this.fresh(ttl, newId());
    this.#free.get(lease)?.();
    this.#free.delete(lease);
    return lease;
  }

  #endUnused(lease: EtcdLease): void {
    this.#free.delete(lease);
    if (lease.isAlive) lease.end();
  }

  /** Returns a new lease for one entry. */
  fresh(ttl: number, id = randomLeaseId()): EtcdLease {
    return new EtcdLease(this.#requests, this, { id, ttl, isShared: false });
  }
}
