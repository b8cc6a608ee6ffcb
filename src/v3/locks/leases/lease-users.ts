/** Whom a lease notifies: its users, and the leases of its client. */
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

/** What a lease uses of the {@link Leases} of its client. */
export interface LeasePool {
  /** Number of tries since the last success that did not create a lease in time. Each further try gets a longer timeout. */
  failedGrants: number;
  /** Registers a revocation under way of a lease without entries. If it fails, the lease expires. */
  addRevocation(ended: Promise<void>): void;
}
