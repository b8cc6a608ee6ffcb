import { atDeadline, Deadline } from '../../time.ts';

/** The clock of a store. Tests pass one whose time they control. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once, `ms` milliseconds from now. Returns a function that cancels the call. */
  after(ms: number, fn: () => void): () => void;
}

/** A clock that starts at the system time and never jumps. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  after: (ms, fn) => atDeadline(Deadline.after(ms / 1000), fn, { ref: false }),
};
