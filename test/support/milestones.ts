import { HUNG } from './until.ts';

/** `headers`: etcd has begun to answer, so a long poll is registered. `answered`: etcd's answer is complete. */
export type Stage = 'arrived' | 'forwarded' | 'headers' | 'answered';

interface Waiter<T> {
  readonly match: (item: T) => boolean;
  readonly stage: Stage;
  readonly found: (item: T) => void;
}

/** Lets a test wait until a matching request reaches a stage. */
export class Milestones<T> {
  readonly #waiters = new Set<Waiter<T>>();

  reach(item: T, stage: Stage): void {
    for (const waiter of this.#waiters) {
      if (waiter.stage === stage && waiter.match(item)) waiter.found(item);
    }
  }

  next(match: (item: T) => boolean, stage: Stage, timeout = HUNG): Promise<T> {
    const reached = new Promise<T>((resolve, reject) => {
      const late = setTimeout(() => {
        this.#waiters.delete(waiter);
        reject(new Error(`no matching request ${stage} within ${timeout} ms`));
      }, timeout);
      late.unref();
      const waiter: Waiter<T> = {
        match,
        stage,
        found: (item) => {
          clearTimeout(late);
          this.#waiters.delete(waiter);
          resolve(item);
        },
      };
      this.#waiters.add(waiter);
    });
    // A test that ends early must not also fail with an unhandled rejection.
    reached.catch(() => {});
    return reached;
  }
}
