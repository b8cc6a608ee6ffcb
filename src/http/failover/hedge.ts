import { Timeout } from '../timeout.ts';

export interface HedgeOptions {
  /** Failed attempts are followed by another one until this number of attempts is reached. Hedged attempts may exceed it. */
  readonly attempts: number;
  /** Whether another attempt may be made after this failure. */
  readonly mayRetry: (error: unknown) => boolean;
  /** Whether the time of the whole call is over, so that a failure ends the call even if attempts are still under way. */
  readonly isTimedOut: () => boolean;
}

/** Starts another attempt after `seconds` and calls `onHedge` right before. Only the last call of `hedgeAfter` counts. */
export type HedgeAfter = (seconds: number, onHedge: () => void) => void;

/**
 * Makes attempts until one of them resolves. Another attempt starts when one has failed, and when the time passed to
 * `hedgeAfter` is over. In the second case the earlier attempts continue. If an attempt then fails before it has called
 * `hedgeAfter`, the next attempt starts immediately, because no timer would start it.
 *
 * Rejects with the last failure.
 */
export function hedge<T>(
  attempt: (hedgeAfter: HedgeAfter) => Promise<T>,
  { attempts, mayRetry, isTimedOut }: HedgeOptions,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let started = 0;
    let running = 0;
    let settled = false;
    let timer: Timeout | undefined;
    const settle = (outcome: () => void): void => {
      settled = true;
      timer?.pause();
      outcome();
    };
    const start = (): void => {
      timer?.pause();
      running += 1;
      let hedged = false;
      const hedgeAfter: HedgeAfter = (seconds, onHedge) => {
        hedged = true;
        timer?.pause();
        const startAnother = (): void => {
          onHedge();
          start();
        };
        if (!settled) timer = Timeout.run(seconds, startAnother, { ref: false });
      };
      started += 1;
      attempt(hedgeAfter).then(
        (value) => settle(() => resolve(value)),
        (error) => {
          running -= 1;
          if (settled) return;
          if (!mayRetry(error) || isTimedOut()) settle(() => reject(error));
          else if (started < attempts || (!hedged && running > 0)) start();
          else if (running === 0) settle(() => reject(error));
        },
      );
    };
    start();
  });
}
