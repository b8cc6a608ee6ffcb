import { Deadline } from '../time.ts';

/** Failures in a row until it is given up: one may be chance. */
const MOST_FAILURES = 2;
/** Seconds until it is tried again. */
const GIVEN_UP_FOR = 600;

/** Something that what stands between us and a member may not support: given up for 10 minutes after two failures in a row. */
export class Trial {
  #failures = 0;
  #retryAt = new Deadline(0);

  get givenUp(): boolean {
    return this.#failures >= MOST_FAILURES && !this.#retryAt.passed;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
    this.#retryAt = Deadline.after(GIVEN_UP_FOR);
  }
}
