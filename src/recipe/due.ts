import { type Source, sleep } from '../cancellation.ts';
import { now } from '../time.ts';

/** How often it is checked on the way whether the event loop is blocked. */
const CHECKS = 4;
/** Milliseconds by which a check is late where the event loop is blocked, and not only busy. */
const BLOCKED = 50;

/**
 * Sleeps until a point on the monotonic clock. Where the event loop is blocked again and again, ends at the last chance
 * before that point, rather than one block after it. Does not keep the process alive.
 * @throws the reason of what ends it early
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
