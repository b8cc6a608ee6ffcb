/**
 * Begins to measure how long this process stands still, because it computes or because the machine runs others. A bound on time
 * has to allow for that. Returns what tells the milliseconds so far.
 */
export declare function measureStalls(): () => number;
