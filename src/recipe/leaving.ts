import { giveUp } from './give-up.ts';
import type { Ticket } from './store.ts';

/** The entry of a hold that has ended, until the next request of this process has replaced it, or it is removed by itself. */
export class Leaving {
  readonly ticket: Ticket;
  /** Resolves as {@link giveUp} does, once {@link settle} has removed the entry. */
  readonly left: Promise<unknown>;
  #resolve: (outcome: Promise<unknown>) => void = () => {};
  #isSettled = false;

  constructor(ticket: Ticket) {
    this.ticket = ticket;
    this.left = new Promise((resolve) => (this.#resolve = resolve));
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Removes the entry unless it was replaced. To be called in any case, any number of times. */
  settle(): Promise<unknown> {
    if (!this.#isSettled) this.#resolve(giveUp(this.ticket));
    this.#isSettled = true;
    return this.left;
  }
}
