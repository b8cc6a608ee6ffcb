/** Timers fire up to this many milliseconds late. */
const TIMER_SLACK = 1.2;

/** Runs each action a fixed time after `pass()`, in order, without a limit on the number of pending actions. */
export class Pacer {
  #delay;
  #due = [];
  #running = false;

  /** @param delay milliseconds; 0 runs each action at once */
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
    // Timers are not exact to less than a millisecond: poll through the last one.
    if (next.at - performance.now() > TIMER_SLACK) setTimeout(this.#run, 1);
    else setImmediate(this.#run);
  };
}
