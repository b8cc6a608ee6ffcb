import { show } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import type { Renewal, RequestOutcome } from '../manager/trace.ts';
import { observe } from './requests.ts';

/** Options of `observeLocks`. */
export interface ObserveOptions {
  /**
   * Returns how the metrics name a lock. Default: by its own name. Give another function if your locks have many names, such as
   * one for each order: each name is a time series of its own.
   */
  readonly labelOf?: (name: string) => string;
}

export const OBSERVE_OPTIONS = { labelOf: true } satisfies OptionNames<ObserveOptions>;

/** @throws {TypeError} if an option does not exist, or `labelOf` is not a function; the message names it */
export function checkOptions(options: ObserveOptions, names: Readonly<Record<string, true>>): void {
  checkOptionNames(options, names);
  const { labelOf } = options;
  if (labelOf !== undefined && typeof labelOf !== 'function')
    throw new TypeError(`labelOf must be a function, got ${show(labelOf)}`);
}

/** Outcomes that alerts watch. */
export const FAILED: readonly RequestOutcome[] = ['timeout', 'lost', 'error'];

/** The metrics of a library. All durations are in seconds. */
export interface Metrics {
  /** Adds 0 to what alerts watch, at the first request for a lock: Prometheus sees no increase in a series that begins with 1. */
  seen(lock: string): void;
  /** Adds 1 or -1 to the number of requests that wait. */
  waiting(change: number, lock: string): void;
  /** Adds 1 or -1 to the number of requests that hold a lock. */
  holding(change: number, lock: string): void;
  waited(seconds: number, lock: string): void;
  held(seconds: number, lock: string): void;
  requeued(lock: string): void;
  ended(outcome: RequestOutcome, lock: string): void;
  renewed(renewal: Renewal): void;
}

/** Upper bounds of buckets in seconds. A wait or a hold takes some milliseconds, or minutes. */
export const DURATIONS: readonly number[] = [0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 15, 30, 60, 300, 900, 3600];
/** As {@link DURATIONS}, for renewals: one request each. */
export const LATENCIES: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** A request until its outcome. */
interface Counted {
  readonly lock: string;
  is: 'waiting' | 'holding';
}

/**
 * Counts the requests that begin from now on.
 * @returns a function that ends this, and subtracts the requests that still wait or hold a lock
 */
export function count(metrics: Metrics, { labelOf = (name) => name }: ObserveOptions): () => void {
  const leave = ({ is, lock }: Counted): void => metrics[is](-1, lock);
  const seen = new Set<string>();
  return observe<Counted>({
    begin: ({ name }) => {
      const lock = labelOf(name);
      if (!seen.has(lock)) metrics.seen(lock);
      seen.add(lock);
      metrics.waiting(1, lock);
      return { lock, is: 'waiting' };
    },
    on: {
      requeued: (_, { lock }) => metrics.requeued(lock),
      held: ({ waited }, counted) => {
        leave(counted);
        counted.is = 'holding';
        metrics.holding(1, counted.lock);
        metrics.waited(waited, counted.lock);
      },
      renewed: ({ renewal }) => metrics.renewed(renewal),
      'renewal-failed': ({ renewal }) => metrics.renewed(renewal),
      outcome: ({ outcome, held }, counted) => {
        leave(counted);
        if (held !== undefined) metrics.held(held, counted.lock);
        metrics.ended(outcome, counted.lock);
      },
    },
    abandon: leave,
  });
}
