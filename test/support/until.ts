import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

/**
 * Milliseconds after which a test stops waiting for a state. Only a test that hangs takes that long, even on a busy machine. To
 * assert an upper bound on time, use `elapsed` in stalls/.
 */
export const HUNG = 60_000;

export interface UntilOptions {
  /** Milliseconds. @default HUNG */
  readonly timeout?: number;
  /** Milliseconds between two reads. @default 10 */
  readonly every?: number;
}

/** Repeats `read` until `accept` accepts the value, and returns the value. Throws what `read` throws. */
export async function until<T>(
  read: () => T | Promise<T>,
  accept: (value: T) => boolean,
  { timeout = HUNG, every = 10 }: UntilOptions = {},
): Promise<T> {
  const end = performance.now() + timeout;
  for (;;) {
    const value = await read();
    if (accept(value)) return value;
    if (performance.now() >= end) throw new Error(`not accepted within ${timeout} ms, last value: ${inspect(value)}`);
    await sleep(every);
  }
}
