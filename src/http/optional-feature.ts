import { Deadline } from '../time.ts';

/** Failures in a row that disable a feature: a single one may be chance. */
const MAX_FAILURES = 2;
/** Seconds until a disabled feature is tried again. */
const DISABLED_FOR = 600;

/**
 * Decides whether to use a feature that a member, or a proxy in front of it, may not support: pipelining or keep-alive.
 * Two failures in a row disable the feature for 10 minutes. After that, one more failure is enough.
 */
export class OptionalFeature {
  #failures = 0;
  #retryAt = new Deadline(0);

  get isDisabled(): boolean {
    return this.#failures >= MAX_FAILURES && !this.#retryAt.passed;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
    this.#retryAt = Deadline.after(DISABLED_FOR);
  }
}
