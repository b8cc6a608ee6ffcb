import { now } from '../support/stalls/stalls.mjs';
import type { Span } from './history.ts';
import type { TestedStore } from './stores/store.ts';

/** Milliseconds between two reads through one endpoint. */
const EVERY = 200;
/** Milliseconds after which a read is given up. */
const READ_TIMEOUT = 2000;
/** Milliseconds without a successful read that count as an outage: several reads through each endpoint. */
export const OUTAGE = 700;

export interface Pulse {
  /** Periods in which no client could write through any endpoint, each as long as it can have been. */
  outages(): Span[];
  stop(): Promise<void>;
}

/**
 * Reads by quorum again and again, through every endpoint that clients have: like a write, such a read needs a quorum, but it
 * causes no event. Each read has its own connection, and waits for no earlier one.
 */
export function startPulse(urls: readonly string[], store: TestedStore): Pulse {
  const stopped = new AbortController();
  const begin = now();
  const answered: Span[] = [];
  const reading = new Set<Promise<void>>();

  const readAll = (): void => {
    for (const url of urls) {
      const from = now();
      const read = store.readByQuorum(url, limited(stopped.signal)).then((ok) => {
        if (ok) answered.push({ from, to: now() });
        reading.delete(read);
      });
      reading.add(read);
    }
  };
  readAll();
  const timer = setInterval(readAll, EVERY);

  return {
    outages: () => gapsIn([{ from: begin, to: begin }, ...answered, { from: now(), to: now() }], OUTAGE),
    async stop() {
      clearInterval(timer);
      stopped.abort();
      await Promise.all(reading);
    },
  };
}

/** Returns periods of more than `longer` from the start of the last success to the end of the next one. */
export function gapsIn(answered: readonly Span[], longer: number): Span[] {
  const gaps: Span[] = [];
  let last = Number.POSITIVE_INFINITY;
  for (const { from, to } of answered.toSorted((a, b) => a.to - b.to)) {
    if (to - last > longer) {
      // Reads that were sent during a gap are answered together at its end: they belong to the same gap.
      const same = gaps.at(-1);
      if (same && last < same.to) gaps[gaps.length - 1] = { from: same.from, to };
      else gaps.push({ from: last, to });
    }
    last = last === Number.POSITIVE_INFINITY ? from : Math.max(last, from);
  }
  return gaps;
}

const limited = (stop: AbortSignal): AbortSignal => AbortSignal.any([stop, AbortSignal.timeout(READ_TIMEOUT)]);
