/** Numbers of leases since the bridge was started. */
export interface LeaseCounts {
  /** Leases that this bridge has created. */
  granted: number;
  /** Leases that this bridge has begun to revoke, including those that other bridges have created. */
  ended: number;
}
