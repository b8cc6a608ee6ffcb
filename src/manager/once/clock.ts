import { atDeadline, type Clock, Deadline } from '../../base/time.ts';

/** The clock of this host. It may be set forwards and backwards. Its timers keep the process alive. */
export const hostClock: Clock = {
  now: () => Date.now(),
  after: (ms, fn) => atDeadline(Deadline.after(ms / 1000), fn),
};
