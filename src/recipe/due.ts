import { type Source, sleep } from '../cancellation.ts';
import { now } from '../time.ts';

/** Into how many sleeps the time is divided. */
const CHECKS = 4;
/** A sleep that ends later than by this many milliseconds shows a blocked event loop. */
const BLOCKED = 50;

/**
 * Sleeps until a point on the monotonic clock. If the event loop is blocked repeatedly, resolves before that point rather
 * than one block after it. Does not keep the process alive.
 * @param due milliseconds on the monotonic clock
 * @throws the signal's reason when it aborts
 */
export async function sleepUntilDue(due: number, signal: Source): Promise<void> {
  const step = (due - now()) / CHECKS;
  let blocked = 0;
  for (let rest = due - now(); rest > blocked; rest = due - now()) {
    const since = now();
    const delay = Math.min(step, rest);
    await sleep(delay, signal, { ref: false });
    const took = now() - since;
    blocked = took - delay > BLOCKED ? took : 0;
  }
}
