/** Timers end up to this many milliseconds late. */
const TIMER_SLACK = 1.2;

/** Does each thing a fixed time after it was given, in order, any number at a time. */
export class Pacer {
  #delay;
  #due = [];
  #running = false;

  /** @param delay milliseconds; 0 does it at once */
  constructor(delay) {
    this.#delay = delay;
  }

  pass(action) {
    if (this.#delay === 0) {
      action();
      return;
    }
    this.#due.push({ at: performance.now() + this.#delay, action });
    if (!this.#running) this.#run();
  }

  #run = () => {
    let done = 0;
    while (done < this.#due.length && this.#due[done].at <= performance.now()) this.#due[done++].action();
    this.#due.splice(0, done);
    const [next] = this.#due;
    this.#running = next !== undefined;
    if (next === undefined) return;
    // No timer is exact to less than a millisecond: the last one is spun through.
    if (next.at - performance.now() > TIMER_SLACK) setTimeout(this.#run, 1);
    else setImmediate(this.#run);
  };
}
