import { setTimeout as sleep } from 'node:timers/promises';

/** Repeats `read` until `accept` accepts the value, and returns the value. Times are in milliseconds. */
export async function until(read, accept, { timeout = 60_000, every = 5 } = {}) {
  const end = performance.now() + timeout;
  for (;;) {
    const value = await read();
    if (accept(value)) return value;
    if (performance.now() >= end)
      throw new Error(`not accepted within ${timeout} ms, last value: ${JSON.stringify(value)}`);
    await sleep(every);
  }
}
