import { atDeadline, type Clock, Deadline } from '../../time.ts';

/** A clock that starts at the system time and never jumps. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Math.floor(performance.timeOrigin + performance.now()),
  after: (ms, fn) => atDeadline(Deadline.after(ms / 1000), fn, { ref: false }),
};
