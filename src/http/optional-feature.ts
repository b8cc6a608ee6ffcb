import { Deadline } from '../base/time.ts';

/** Seconds until a disabled feature is tried again. */
const DISABLED_FOR = 600;

/**
 * Decides whether to use a feature that a member, or a proxy in front of it, may not support: pipelining or keep-alive.
 * Disables the feature for 10 minutes after a number of failures in a row. After that, one more failure is enough.
 */
export class OptionalFeature {
  readonly #maxFailures: number;
  #failures = 0;
  #retryAt = new Deadline(0);

  /** @param maxFailures the number of failures in a row that disable the feature */
  constructor(maxFailures: number) {
    this.#maxFailures = maxFailures;
  }

  get isDisabled(): boolean {
    return this.#failures >= this.#maxFailures && !this.#retryAt.passed;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
    this.#retryAt = Deadline.after(DISABLED_FOR);
  }
}
