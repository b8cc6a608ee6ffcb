import { atDeadline, Deadline } from '../../time.ts';

/** What tells a store the time, so that a test can make it pass. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once, that many milliseconds from now. Returns what cancels it. */
  after(ms: number, fn: () => void): () => void;
}

/** Begins at the time of day and never jumps. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  after: (ms, fn) => atDeadline(Deadline.after(ms / 1000), fn, { ref: false }),
};
