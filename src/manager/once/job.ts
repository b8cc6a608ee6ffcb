/** A job that runs once per tick in the cluster, as `LockManager.once` returns it. */
export interface OnceJob {
  /** Begins no further tick, except one whose record is being written at the moment. A callback under way continues. */
  stop(): void;
  /**
   * Resolves when the job begins no further tick and the callback has ended: after `stop()`, when the option `signal`
   * aborts, or when the client is closed. Rejects if the option `report` has thrown.
   */
  readonly stopped: Promise<void>;
  /** Stops the job at the end of an `await using` block, and waits for its callback. */
  [Symbol.asyncDispose](): Promise<void>;
}
