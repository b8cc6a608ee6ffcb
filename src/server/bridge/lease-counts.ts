/** Numbers of leases that the bridge has created and ended so far. A lease that was not ended is in use, or has expired. */
export interface LeaseCounts {
  granted: number;
  ended: number;
}
