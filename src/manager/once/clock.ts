import { atDeadline, Deadline } from '../../time.ts';

/** The clock that says which tick is the current one. Tests pass one whose time they control. */
export interface WallClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once, `ms` milliseconds from now. Returns a function that cancels the call. */
  after(ms: number, fn: () => void): () => void;
}

/** The clock of this host. It may be set forwards and backwards. Its timers keep the process alive. */
export const hostClock: WallClock = {
  now: () => Date.now(),
  after: (ms, fn) => atDeadline(Deadline.after(ms / 1000), fn),
};
