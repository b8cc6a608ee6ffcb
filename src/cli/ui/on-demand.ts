import { ignore } from '../../base/cancellation.ts';
import { now } from '../../base/time.ts';

/** Milliseconds for which a failure is used for all who ask, at most. */
const FAILURE_FOR = 5000;

/** Work that viewers ask for. At most one run at a time, and its result is used for all who ask within some time. */
export class OnDemand<T> {
  readonly #run: () => Promise<T>;
  readonly #freshFor: number;
  #result: Promise<T> | undefined;
  /** undefined: the run has not ended. */
  #freshUntil: number | undefined;

  /** @param freshFor milliseconds for which a result is used, from the end of its run */
  constructor(run: () => Promise<T>, freshFor: number) {
    this.#run = run;
    this.#freshFor = freshFor;
  }

  /** Returns the result of the present run, or of the last one if it is fresh, or of a new one. */
  get(): Promise<T> {
    if (this.#result && (this.#freshUntil === undefined || now() < this.#freshUntil)) return this.#result;
    this.#freshUntil = undefined;
    const result = this.#run();
    const keep = (ms: number) => (): void => {
      this.#freshUntil = now() + ms;
    };
    result.then(keep(this.#freshFor), keep(Math.min(this.#freshFor, FAILURE_FOR))).catch(ignore);
    this.#result = result;
    return result;
  }
}
