import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { now } from '../base/time.ts';
import { Exchange, type ExchangeOptions } from './exchange.ts';
import { header, type WireAnswer } from './message.ts';
import type { OptionalFeature } from './optional-feature.ts';
import { Timeout } from './timeout.ts';

/** Milliseconds. A connection closed this soon after its first answer counts as a failure of keep-alive. */
const CLOSED_BY_ANSWER = 1000;

/** What {@link Connection.send} sends. */
export type HttpRequest = Pick<Dispatcher.DispatchOptions, 'method' | 'path'> &
  Required<Pick<Dispatcher.DispatchOptions, 'headers' | 'body'>>;

/** @param unanswered whether the connection had been used before and carried no answer to this request */
export type ConvertError = (error: Error, unanswered: boolean) => Error;

/** Gets a connection back when every exchange on it has ended. */
interface Owner {
  giveBack(connection: Connection): void;
}

/** One connection to a member. When its socket is closed, undici opens a new socket for the next request. */
export class Connection {
  readonly transport: Dispatcher;
  readonly #keepAlive: OptionalFeature;
  readonly #convertError: ConvertError;
  #owner: Owner | undefined;
  #exchanges = 0;
  /** Whether the last request has asked the member to close the connection. */
  #asksToClose = false;
  #socket: Socket | undefined;
  /** Number of complete answers on the current socket. */
  #answers = 0;
  /** When the last complete answer came. */
  #answeredAt = 0;

  /**
   * @param keepAlive records whether the member keeps the connection open after an answer
   * @param make returns the transport, and calls `onSocket` with each socket that it opens
   */
  constructor(
    keepAlive: OptionalFeature,
    convertError: ConvertError,
    make: (onSocket: (socket: Socket) => void) => Dispatcher,
  ) {
    this.#keepAlive = keepAlive;
    this.#convertError = convertError;
    this.transport = make(this.#onSocket);
  }

  /** Called by a lender when it lends this connection. */
  lentBy(owner: Owner): this {
    this.#owner = owner;
    return this;
  }

  /**
   * Sends a request. See {@link Exchange.answer}.
   * @param ref whether the exchange keeps the process alive
   * @param timeout what is left of the timeout, if a part of it has passed
   */
  send(
    request: HttpRequest,
    options: ExchangeOptions,
    ref: boolean,
    timeout = new Timeout(options.timeout),
  ): Exchange['answer'] {
    const exchange = new Exchange(options, this, ref, timeout);
    this.startExchange();
    this.#asksToClose = this.#keepAlive.isDisabled;
    // By default, undici would pipeline nothing behind this request.
    this.transport.dispatch({ ...request, blocking: false, reset: this.#asksToClose }, exchange);
    return exchange.answer;
  }

  startExchange(): void {
    this.#exchanges += 1;
  }

  endExchange(): void {
    this.#exchanges -= 1;
    if (this.#exchanges === 0) this.#owner?.giveBack(this);
  }

  onAnswer(head: WireAnswer): void {
    this.#answers += 1;
    this.#answeredAt = now();
    if (this.#answers > 1) this.#keepAlive.succeeded();
    else if (!this.#asksToClose && header(head, 'connection') === 'close') this.#keepAlive.failed();
  }

  convertError(error: Error, answering: boolean): Error {
    return this.#convertError(error, this.#answers > 0 && !answering);
  }

  /** Sends everything that is written until the next tick as one packet. */
  writeTogether(): void {
    const socket = this.#socket;
    if (!socket) return;
    socket.cork();
    process.nextTick(() => socket.uncork());
  }

  readonly #onSocket = (socket: Socket): void => {
    this.#socket = socket;
    this.#answers = 0;
    socket.once('end', this.#onClosedByMember).once('error', this.#onClosedByMember);
  };

  readonly #onClosedByMember = (error?: NodeJS.ErrnoException): void => {
    // undici closes a socket with an error of its own, as after an answer with `connection: close`.
    if (error?.code?.startsWith('UND_ERR')) return;
    if (this.#answers === 1 && now() - this.#answeredAt < CLOSED_BY_ANSWER) this.#keepAlive.failed();
  };
}
