import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

export interface UntilOptions {
  /** Milliseconds. @default 15000 */
  readonly timeout?: number;
  /** Milliseconds between two reads. @default 10 */
  readonly every?: number;
}

/** Reads again and again until the value is accepted, and returns it; what `read` throws is thrown. */
export async function until<T>(
  read: () => T | Promise<T>,
  accept: (value: T) => boolean,
  { timeout = 15_000, every = 10 }: UntilOptions = {},
): Promise<T> {
  const end = performance.now() + timeout;
  for (;;) {
    const value = await read();
    if (accept(value)) return value;
    if (performance.now() >= end) throw new Error(`not accepted within ${timeout} ms, last value: ${inspect(value)}`);
    await sleep(every);
  }
}
