// Imported and bound, because a test may replace the global timers and clocks.
import { setTimeout } from 'node:timers';

const nanoseconds = process.hrtime.bigint.bind(process.hrtime);

/** Milliseconds between two beats. */
const EVERY = 20;
/** Milliseconds by which a timer is late even on an idle machine. */
const USUAL = 2;

/** Milliseconds on the machine's monotonic clock, which all processes share. */
export const now = () => Number(nanoseconds()) / 1e6;

/**
 * Counts the milliseconds since `begun` in which timers of this thread were on time, until the process exits.
 * @param counter array of one number, which another thread may read: -1 until the count begins
 */
export function countOnTime(counter, begun, { ref }) {
  let last = now();
  counter[0] = last - begun;
  const beat = () => {
    const at = now();
    const since = at - last;
    counter[0] += since > EVERY + USUAL ? EVERY : since;
    last = at;
    arm();
  };
  const arm = () => {
    const timer = setTimeout(beat, EVERY);
    if (!ref) timer.unref();
  };
  arm();
}
