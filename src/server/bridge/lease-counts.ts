/** What the bridge has done with leases so far. Those that were neither ended nor are in use have expired. */
export interface LeaseCounts {
  granted: number;
  ended: number;
}
