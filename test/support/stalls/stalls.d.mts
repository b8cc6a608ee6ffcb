/** A point in time, and how long the machine had stalled by then. */
export interface Moment {
  /** Milliseconds, see {@link now}. */
  readonly at: number;
  /**
   * Milliseconds for which the event loop of this process was late, plus those for which another thread was: a request waits
   * for this process and then for a server. Both are 0 on an idle machine.
   */
  readonly stalled: number;
}

/** Milliseconds on the machine's monotonic clock, which all processes share, including Python's `time.monotonic()`. */
export declare const now: () => number;

/** Returns the current moment. */
export declare function moment(): Moment;

/**
 * Milliseconds from one moment to another, by default the current one, without the time for which the machine stalled.
 * For upper bounds only: for a lower bound use `to.at - from.at`.
 */
export declare function elapsed(from: Moment, to?: Moment): number;
