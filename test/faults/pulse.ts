import http from 'node:http';
import { now } from '../support/stalls/stalls.mjs';
import type { Span } from './history.ts';

/** Milliseconds between two questions by one way. */
const EVERY = 200;
const GIVEN_UP = 2000;
/** Milliseconds without a sign of life that make an outage: several questions by each way. */
const OUTAGE = 700;

export interface Pulse {
  /** Times in which no write went through for a client, by whichever way, each as long as it may have been. */
  outages(): Span[];
  stop(): Promise<void>;
}

/**
 * Asks again and again, by every way that clients have, something that etcd answers as it would a write: a quorum read goes
 * through raft, and leaves no event. Each question has a connection of its own, and waits for no earlier one.
 */
export function startPulse(urls: readonly string[]): Pulse {
  const stopped = new AbortController();
  const begin = now();
  const answered: Span[] = [];
  const asking = new Set<Promise<void>>();

  const ask = (): void => {
    for (const url of urls) {
      const from = now();
      const asked = quorumRead(url, stopped.signal).then((ok) => {
        if (ok) answered.push({ from, to: now() });
        asking.delete(asked);
      });
      asking.add(asked);
    }
  };
  ask();
  const timer = setInterval(ask, EVERY);

  return {
    outages: () => gapsIn([{ from: begin, to: begin }, ...answered, { from: now(), to: now() }], OUTAGE),
    async stop() {
      clearInterval(timer);
      stopped.abort();
      await Promise.all(asking);
    },
  };
}

/** Times longer than that from the beginning of the last success so far to the end of the next one. */
export function gapsIn(answered: readonly Span[], longer: number): Span[] {
  const gaps: Span[] = [];
  let last = Number.POSITIVE_INFINITY;
  for (const { from, to } of answered.toSorted((a, b) => a.to - b.to)) {
    if (to - last > longer) {
      // What was asked during a gap is answered all at once when that ends: it is still the same.
      const same = gaps.at(-1);
      if (same && last < same.to) gaps[gaps.length - 1] = { from: same.from, to };
      else gaps.push({ from: last, to });
    }
    last = last === Number.POSITIVE_INFINITY ? from : Math.max(last, from);
  }
  return gaps;
}

function quorumRead(url: string, stop: AbortSignal): Promise<boolean> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(GIVEN_UP)]);
  return new Promise((resolve) => {
    const request = http.get(`${url}/v2/keys/_pulse?quorum=true`, { agent: false, signal }, (answer) => {
      answer.resume().on('error', () => resolve(false));
      // Nobody makes that key: etcd itself says that it is not there.
      answer.on('end', () => resolve(answer.statusCode === 404));
    });
    request.on('error', () => resolve(false));
  });
}
