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
  /** Milliseconds between two reads. @default 10, growing to 50: each read takes processor time, here and in etcd */
  readonly every?: number;
}

/** Milliseconds until the next read after a wait of so many. */
const growing = (waited: number): number => Math.max(10, Math.min(waited / 20, 50));

/** Repeats `read` until `accept` accepts the value, and returns the value. Throws what `read` throws. */
export async function until<T>(
  read: () => T | Promise<T>,
  accept: (value: T) => boolean,
  { timeout = HUNG, every }: UntilOptions = {},
): Promise<T> {
  const begin = performance.now();
  for (;;) {
    const value = await read();
    if (accept(value)) return value;
    const waited = performance.now() - begin;
    if (waited >= timeout) throw new Error(`not accepted within ${timeout} ms, last value: ${inspect(value)}`);
    await sleep(every ?? growing(waited));
  }
}
