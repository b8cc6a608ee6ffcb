/** What a lease is created with, and whom it notifies: its users, and the leases of its client. */
import { now } from '../../../base/time.ts';
import type { GatewayCall } from '../../gateway/gateway.ts';
import type { Granted } from '../../rpc/leases.ts';

export interface LeaseTerms {
  readonly id: string;
  /** The requested TTL, in seconds. */
  readonly ttl: number;
  /** Whether the lease may have several users. Any of them keeps it alive. */
  readonly isShared: boolean;
}

/** A user of a lease: the ticket whose entry is attached to the lease, or will be. */
export interface LeaseUser {
  /** Key of that entry. */
  readonly key: string;
  /**
   * Called when only other users keep this lease alive: the user has not renewed it for a whole TTL. If the entry is attached to
   * it, the entry must be removed.
   * @param lease id of the lease
   */
  onExpired(lease: string): void;
}

/** The users of one lease, each with the time of its last renewal: milliseconds on the monotonic clock. */
export class LeaseUsers {
  readonly #renewedAt = new Map<LeaseUser, number>();

  get size(): number {
    return this.#renewedAt.size;
  }

  get keys(): ReadonlySet<string> {
    return new Set(Array.from(this.#renewedAt.keys(), ({ key }) => key));
  }

  /** Adds the user, or records that it has renewed the lease. */
  add(user: LeaseUser): void {
    this.#renewedAt.set(user, now());
  }

  /** Records that a user has renewed the lease, unless it is no user any more. */
  renewed(user: LeaseUser): void {
    if (this.#renewedAt.has(user)) this.add(user);
  }

  /** Returns whether it was a user. */
  delete(user: LeaseUser): boolean {
    return this.#renewedAt.delete(user);
  }

  /** Returns the users that have renewed the lease since this time. Calls `onExpired` of the others. */
  renewedSince(since: number, lease: string): Set<LeaseUser> {
    const renewed = new Set<LeaseUser>();
    for (const [user, renewedAt] of this.#renewedAt)
      if (renewedAt >= since) renewed.add(user);
      else user.onExpired(lease);
    return renewed;
  }
}

/** What a lease uses of the {@link Leases} of its client. */
export interface LeasePool {
  /** Creates a lease. Unless the call has limits of its own, each try after one that was not answered in time lasts longer. */
  grant(id: string, ttl: number, call: GatewayCall): Promise<Granted>;
  /** Registers a revocation under way of a lease without entries. If it fails, the lease expires. */
  addRevocation(ended: Promise<void>): void;
}
