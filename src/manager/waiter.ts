import { addAbortListener, removeAbortListener, type Source } from '../cancellation.ts';
import type { LockMode } from '../recipe/entry-value.ts';
import { atDeadline, type Deadline } from '../time.ts';
import type { Linked } from './line.ts';

/** What ends a wait before its turn. */
export interface Patience {
  readonly signal: AbortSignal | undefined;
  /** The client's. */
  readonly closing: Source;
  readonly deadline: Deadline;
  /** Makes the error at the deadline. */
  readonly timedOut: () => unknown;
}

/** The two ways out of a wait. */
interface Ways<Turn> {
  readonly enter: (turn: Turn) => void;
  readonly leave: (reason: unknown) => void;
}

/** A request that waits for its turn in this process. There may be very many, so what a turn needs is not made yet. */
export class Waiter<Turn> implements Linked<Waiter<Turn>> {
  readonly mode: LockMode;
  before: Waiter<Turn> | undefined = undefined;
  behind: Waiter<Turn> | undefined = undefined;
  readonly #patience: Patience;
  readonly #ways: Ways<Turn>;
  readonly #cancel: () => void;

  constructor(mode: LockMode, patience: Patience, ways: Ways<Turn>) {
    this.mode = mode;
    this.#patience = patience;
    this.#ways = ways;
    const { signal, closing, deadline, timedOut } = patience;
    addAbortListener(closing, this.#leave);
    if (signal) addAbortListener(signal, this.#leave);
    this.#cancel = atDeadline(deadline, () => this.#leave(timedOut()));
  }

  enter(turn: Turn): void {
    this.#stop();
    this.#ways.enter(turn);
  }

  readonly #leave = (reason: unknown): void => {
    this.#stop();
    this.#ways.leave(reason);
  };

  #stop(): void {
    const { signal, closing } = this.#patience;
    removeAbortListener(closing, this.#leave);
    if (signal) removeAbortListener(signal, this.#leave);
    this.#cancel();
  }
}
