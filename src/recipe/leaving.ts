import { AsyncContext } from '../base/async-context.ts';
import { giveUp } from './give-up.ts';
import type { Ticket } from './store.ts';

/** The entry of an ended hold, until the next request of this process replaces it. If none does, {@link settle} removes it. */
export class Leaving {
  readonly ticket: Ticket;
  /** Resolves to the result of {@link giveUp}, which {@link settle} calls. */
  readonly left: Promise<unknown>;
  /** The next request may call {@link settle}, but the removal is no part of that request. */
  readonly #context = new AsyncContext();
  #resolve: (outcome: Promise<unknown>) => void = () => {};
  #isSettled = false;

  constructor(ticket: Ticket) {
    this.ticket = ticket;
    this.left = new Promise((resolve) => (this.#resolve = resolve));
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Removes the entry unless it was replaced. Must be called in every case; further calls have no effect. */
  settle(): Promise<unknown> {
    if (!this.#isSettled) this.#resolve(this.#context.run(() => giveUp(this.ticket)));
    this.#isSettled = true;
    return this.left;
  }
}
