import type { Dispatcher } from 'undici';
import { addAbortListener, ignore, removeAbortListener, type Source } from '../base/cancellation.ts';
import { Deadline, now } from '../base/time.ts';
import { EtcdConnectionFailed } from '../errors.ts';
import { Body } from './body.ts';
import type { LongAnswer, WireAnswer } from './message.ts';
import type { Timeout } from './timeout.ts';

/** Minimum milliseconds between two restarts of timeouts: an answer may have very many pieces. */
const NOTE_EVERY = 10;

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Limits and callbacks of an exchange. */
export interface ExchangeOptions {
  /** Seconds to wait for the answer. */
  readonly timeout: number;
  /** Ends the exchange when it aborts. */
  readonly ending: Source | undefined;
  /** For an answer that may be long: `timeout` then limits only the time until its headers. */
  readonly long?: LongAnswer | undefined;
  /** Called right before the request is written. */
  readonly onStart?: (() => void) | undefined;
  /** Called when the headers have arrived, with an answer whose body is still empty. An error thrown by it ends the exchange. */
  readonly onHeaders?: ((head: WireAnswer) => void) | undefined;
  /**
   * Gets the body in pieces as it arrives, for an answer that has no end. The answer then has an empty body. An error thrown by it ends
   * the exchange.
   */
  readonly onData?: ((chunk: Buffer) => void) | undefined;
}

/** The connection of an exchange. */
interface Carrier {
  /** Called when the complete answer has come, with its status and headers. */
  onAnswer(head: WireAnswer): void;
  /** Called when undici has finished with the exchange. This may be after the exchange has ended for its caller. */
  endExchange(): void;
  /** Converts an error of undici to the error of the call. `answering` says whether the headers of an answer had come. */
  convertError(error: Error, answering: boolean): Error;
}

/**
 * One request and its answer, as a handler for undici's `dispatch()`. undici's `request()` would cost more than the rest of
 * a call: it makes a stream of each body and listens to an abort signal.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /**
   * The complete answer, or undefined if none came within the timeout. Rejects with the reason of `ending` if that aborts, with
   * the error of a callback or of a body that is too large or stops before its end, or with the converted error of undici.
   */
  readonly answer: Promise<WireAnswer | undefined>;
  readonly #options: ExchangeOptions;
  readonly #carrier: Carrier;
  readonly #timeout: Timeout;
  /** When an answer must be complete; only for a {@link LongAnswer}. */
  readonly #completeBy: Deadline;
  /** When the request was first written to a connection. */
  #sentAt = now();
  #resolve: (answer: WireAnswer | undefined) => void = ignore;
  #reject: (reason: unknown) => void = ignore;
  /** The error that undici aborts the request with; set when the exchange is given up. */
  #givenUp: Error | undefined;
  #head: Writable<WireAnswer> | undefined;
  /** When timeouts were last started again because of a piece of the answer. */
  #notedAt = Number.NEGATIVE_INFINITY;
  #body: Body | undefined;
  #controller: Dispatcher.DispatchController | undefined;

  /** @param ref whether the timeout keeps the process alive */
  constructor(options: ExchangeOptions, carrier: Carrier, ref: boolean, timeout: Timeout) {
    const { ending, long } = options;
    this.#options = options;
    this.#carrier = carrier;
    this.#timeout = timeout;
    this.#completeBy = long ? Deadline.after(long.within) : Deadline.never;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    timeout.run(this.#onTimeout, { ref });
    if (ending?.aborted) this.#onAbort(ending.reason);
    else if (ending) addAbortListener(ending, this.#onAbort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // undici may write a pipelined request twice. The member may have carried it out after the first time, so keep that time.
    if (!this.#controller) this.#sentAt = now();
    this.#controller = controller;
    // The exchange was given up while it waited for a connection: the request must not be sent.
    if (this.#givenUp) controller.abort(this.#givenUp);
    else this.#options.onStart?.();
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: WireAnswer['headers']): void {
    if (status < 200) return;
    this.#head = { status, headers, body: '', sentAt: this.#sentAt };
    this.#body = new Body(this.#head);
    try {
      this.#notePiece();
      this.#body.checkDeclared();
      this.#options.onHeaders?.(this.#head);
    } catch (error) {
      this.#onAbort(error); // nobody will read the body, so close the connection
    }
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    try {
      if (this.#givenUp) return;
      this.#notePiece();
      if (this.#options.onData) this.#options.onData(chunk);
      else this.#body?.add(chunk);
    } catch (error) {
      this.#onAbort(error);
    }
  }

  onResponseEnd(): void {
    const head = this.#head;
    if (head) {
      this.#carrier.onAnswer(head);
      head.body = this.#body?.text ?? '';
    }
    this.#resolve(head);
    this.#end();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    if (!this.#givenUp) this.#reject(this.#carrier.convertError(error, this.#head !== undefined));
    this.#end();
  }

  #notePiece(): void {
    const { long } = this.#options;
    if (!long || now() - this.#notedAt < NOTE_EVERY) return;
    this.#notedAt = now();
    this.#timeout.restart(Math.min(long.silence, this.#completeBy.remaining / 1000));
    long.onPiece();
  }

  readonly #onAbort = (reason: unknown): void => {
    this.#reject(reason);
    this.#giveUp(new Error('given up'));
  };

  readonly #onTimeout = (): void => {
    const { long } = this.#options;
    if (long && this.#head) this.#reject(incomplete(long, this.#completeBy.passed));
    else this.#resolve(undefined);
    this.#giveUp(new Error('no answer in time'));
  };

  #giveUp(why: Error): void {
    this.#givenUp = why;
    this.#stopWaiting();
    this.#controller?.abort(why);
  }

  #end(): void {
    this.#stopWaiting();
    this.#carrier.endExchange();
  }

  #stopWaiting(): void {
    const { ending } = this.#options;
    if (ending) removeAbortListener(ending, this.#onAbort);
    this.#timeout.pause();
  }
}

function incomplete({ silence, within }: LongAnswer, isOverall: boolean): EtcdConnectionFailed {
  const seconds = (value: number): string => `${Number(value.toPrecision(2))} s`;
  const why = isOverall
    ? `was not complete after ${seconds(within)}`
    : `stopped for ${seconds(silence)} before its end`;
  return new EtcdConnectionFailed(`the answer ${why}`, { outcomeUnknown: true });
}
