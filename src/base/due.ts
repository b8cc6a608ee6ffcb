import { type Source, sleep } from './cancellation.ts';
import { now } from './time.ts';

/** Number of sleeps into which the time is divided. */
const CHECKS = 4;
/** Milliseconds: if a sleep takes this much longer than asked for, the event loop was blocked. */
const BLOCKED = 50;

/**
 * Sleeps until `due`, in several short sleeps. Resolves early if the event loop was blocked during a sleep, and another sleep of
 * that length would end after `due`: the work that is due would then be late. Does not keep the process alive.
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
