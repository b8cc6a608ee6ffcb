/** A point in time, and how long the machine had stood still by then. */
export interface Moment {
  /** Milliseconds, see {@link now}. */
  readonly at: number;
  /**
   * Milliseconds for which the event loop of this process was late, plus those for which another thread was: a request waits
   * for this process and then for a server. 0 for both on a machine that has time for everyone.
   */
  readonly stalled: number;
}

/** Milliseconds on the machine's monotonic clock, which all processes share: Python's `time.monotonic()`, too. */
export declare const now: () => number;

/** The present moment. */
export declare function moment(): Moment;

/**
 * Milliseconds from one moment to another, by default the present one, without the time for which the machine stood still.
 * For upper bounds only: a lower bound takes `to.at - from.at`.
 */
export declare function elapsed(from: Moment, to?: Moment): number;
