import type { Dispatcher } from 'undici';
import { addAbortListener, ignore, removeAbortListener, type Source } from '../cancellation.ts';
import { now } from '../time.ts';
import { Body } from './body.ts';
import type { WireAnswer } from './message.ts';
import type { Timeout } from './timeout.ts';

/** How long an answer is waited for. */
export interface Limits {
  /** Ends it. */
  readonly ending: Source | undefined;
  readonly timeout: Timeout;
  /** Whether the timeout keeps the process alive. */
  readonly ref: boolean;
  /** Called as soon as the headers are there, with an answer that has no body yet; what it throws ends the exchange. */
  readonly begun?: ((head: WireAnswer) => void) | undefined;
}

export interface Hooks {
  /** Called right before the request is written. */
  readonly starts?: (() => void) | undefined;
  /** Called when the whole answer has come. */
  readonly answered: () => void;
  /** Called when undici is done with it, which may be later than its end. */
  readonly over: () => void;
}

/** Makes the error a call rejects with of one of undici's. `begun`: the headers of an answer had come. */
type Failure = (error: Error, begun: boolean) => Error;

/**
 * One request and its answer, as undici tells of them. (Its `request()` makes a stream of each body, and listens to an
 * abort signal: more work than all the rest.)
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /** The whole answer; undefined where there was none within the timeout. Rejects with the reason of what ends it. */
  readonly answer: Promise<WireAnswer | undefined>;
  readonly #limits: Limits;
  readonly #failure: Failure;
  readonly #hooks: Hooks;
  /** When it was first written to a connection. */
  #sentAt = now();
  #resolve: (answer: WireAnswer | undefined) => void = ignore;
  #reject: (reason: unknown) => void = ignore;
  /** Why nothing more is waited for, if so. */
  #given: Error | undefined;
  #head: WireAnswer | undefined;
  #body: Body | undefined;
  #controller: Dispatcher.DispatchController | undefined;

  constructor(limits: Limits, failure: Failure, hooks: Hooks) {
    this.#limits = limits;
    this.#failure = failure;
    this.#hooks = hooks;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { ending, timeout, ref } = limits;
    timeout.run(this.#onTimeout, { ref });
    if (ending?.aborted) this.#onAbort(ending.reason);
    else if (ending) addAbortListener(ending, this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Behind another request it may be written twice: it may have been carried out since the first.
    if (!this.#controller) this.#sentAt = now();
    this.#controller = controller;
    // Given up while it waited for a connection: never sent.
    if (this.#given) controller.abort(this.#given);
    else this.#hooks.starts?.();
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: WireAnswer['headers']): void {
    if (status < 200) return;
    this.#head = { status, headers, body: '', sentAt: this.#sentAt };
    this.#body = new Body(this.#head);
    try {
      this.#body.begin();
      this.#limits.begun?.(this.#head);
    } catch (error) {
      this.#onAbort(error); // nobody will read the body: let the connection go
    }
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    try {
      if (!this.#given) this.#body?.add(chunk);
    } catch (error) {
      this.#onAbort(error);
    }
  }

  onResponseEnd(): void {
    const head = this.#head;
    const body = this.#body?.text ?? '';
    this.#hooks.answered();
    this.#resolve(head && { status: head.status, headers: head.headers, body, sentAt: head.sentAt });
    this.#end();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (!this.#given) this.#reject(this.#failure(error, this.#head !== undefined));
    this.#end();
  }

  readonly #onAbort = (reason: unknown): void => {
    this.#reject(reason);
    this.#giveUp(new Error('given up'));
  };

  readonly #onTimeout = (): void => {
    this.#resolve(undefined);
    this.#giveUp(new Error('no answer in time'));
  };

  #giveUp(why: Error): void {
    this.#given = why;
    this.#leave();
    this.#controller?.abort(why);
  }

  #end(): void {
    this.#leave();
    this.#hooks.over();
  }

  #leave(): void {
    const { ending, timeout } = this.#limits;
    if (ending) removeAbortListener(ending, this.#onAbort);
    timeout.pause();
  }
}
