/** A tick as the store has it: the last one that any host has begun. */
export interface RecordedTick {
  /** When the tick was due. */
  readonly at: Date;
  /** Label of the host that has begun it, by default `hostname:pid`; undefined if it has none. */
  readonly by: string | undefined;
  /**
   * `ran`: the callback returned. `failed`: it threw, or lost its lock. `begun`: no end was recorded. In
   * {@link Tick.previous}, `begun` means: the process has ended, could not record the end, or wrote the record too late
   * to run the callback. Or the callback lost its lock and still runs.
   */
  readonly state: 'begun' | 'ran' | 'failed';
}

/** A tick of a job, as its callback gets it. */
export interface Tick {
  /** When the tick was due by the schedule, which is the same on every host. The callback may run later. */
  readonly at: Date;
  /**
   * Number of ticks between the previous one and this one that no host has begun, counted up to 10,000. undefined if
   * the previous one is not known: at the first tick, and if no tick was begun for more than ten ticks and a day.
   */
  readonly missed: number | undefined;
  /** The last tick before this one that a host has begun; undefined if it is not known. */
  readonly previous: RecordedTick | undefined;
}

/**
 * The outcome of a tick for one job:
 * - `ran`: its callback ran here, and returned
 * - `failed`: it was begun here, but the callback threw, or the lock was lost
 * - `taken`: a host has already begun this tick or a later one; it may be this host
 * - `skipped`: the job could not begin it, for example because somebody held the lock until the next tick was due
 */
export type TickOutcome = 'ran' | 'failed' | 'taken' | 'skipped';

/** The outcome of a tick on this host, as the option `report` gets it. */
export interface TickReport {
  /** How it ended. */
  readonly outcome: TickOutcome;
  /** When the tick was due. */
  readonly at: Date;
  /** The tick as the callback got it, if it ran or failed; else undefined. */
  readonly tick: Tick | undefined;
  /** If the tick was taken, the last tick that a host has begun: this one or a later one; else undefined. */
  readonly recorded: RecordedTick | undefined;
  /** Why the tick failed or was skipped; else undefined. If somebody else held the lock, normally names the holder. */
  readonly error: unknown;
}
