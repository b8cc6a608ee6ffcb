import type { Socket } from 'node:net';
import { buildConnector, Client } from 'undici';
import { Scope, type Source } from '../cancellation.ts';
import { EtcdConnectionFailed, EtcdTlsFailed } from '../errors.ts';
import { Connection } from './connection.ts';
import { Borrowers, Connections, type Loan } from './connections.ts';
import { Exchange, type Limits } from './exchange.ts';
import type { WireAnswer, WireRequest } from './message.ts';
import type { HttpSettings } from './options.ts';
import { Timeout } from './timeout.ts';
import { describe, heedAlerts, hint, isClosed, isDistrusted, whyRefused } from './tls.ts';
import { Trial } from './trial.ts';

/**
 * Requests are of four kinds that never wait for each other: short calls, reads (of which many may be silent for long, and
 * must not hold up a renewal), long polls (so that a thousand waiters do not hold up a release), and background work, whose
 * sockets do not keep the process alive. Calls and reads take turns on the same connections.
 */
export type Lane = 'call' | 'read' | 'poll' | 'background';

interface Asking {
  /** Seconds until the attempt is given up. */
  readonly timeout: number;
  /** Ends the attempt. */
  readonly ending: Source | undefined;
  /** Called as soon as the headers are there, with an answer that has no body yet. */
  readonly begun?: ((head: WireAnswer) => void) | undefined;
}

export interface SendOptions extends Asking {
  readonly lane: Lane;
}

/** A request that does not wait for the answer to the one before it. */
export interface Behind extends Asking {
  readonly request: WireRequest;
  /** Told of its answer as soon as it is on its way. */
  readonly sent: (answer: Promise<WireAnswer | undefined>) => void;
}

/** How many short calls there are at a time. */
const MOST_CALLS = 64;
/** A member that does not even accept a connection is given up sooner than one that is slow to answer. */
const CONNECT_TIMEOUT = 2000;

/** One member: sends one request at a time of asking, once. */
export class Endpoint {
  readonly url: string;
  readonly #settings: HttpSettings;
  /** Names and values in turn, as undici takes them. */
  readonly #headers: string[];
  readonly #formHeaders: string[];
  /** Whether the member answers a request that is sent before the one before it is answered. */
  readonly pipelining = new Trial();
  /** Whether it keeps connections open after an answer, or says that it does not. */
  readonly #reuse = new Trial();
  readonly #connections: readonly Connections[];
  readonly #borrowers: Readonly<Record<Lane, Borrowers>>;
  readonly #sockets = new Set<Socket>();
  /** Failures to connect: what waited for that connection was never sent. */
  readonly #connectErrors = new WeakSet<Error>();
  /** Those that are about the member's certificate. */
  readonly #distrusted = new WeakSet<Error>();
  /** See {@link wasStale}. */
  readonly #stale = new WeakSet<Error>();

  constructor(url: string, settings: HttpSettings) {
    this.url = url;
    this.#settings = settings;
    this.#headers = settings.authorization === undefined ? [] : ['authorization', settings.authorization];
    this.#formHeaders = [...this.#headers, 'content-type', 'application/x-www-form-urlencoded'];
    const shared = this.#connectionsFor('call', 2);
    const polls = this.#connectionsFor('poll', 1);
    const background = this.#connectionsFor('background', 1);
    this.#connections = [shared, polls, background];
    this.#borrowers = {
      call: new Borrowers(shared, MOST_CALLS),
      read: new Borrowers(shared),
      poll: new Borrowers(polls),
      background: new Borrowers(background),
    };
  }

  /**
   * Resolves to the whole answer; undefined when there was none within the timeout.
   * @param behind for a call or a read: what goes out right behind it on the same connection, so that the member takes both
   * in this order
   * @throws {EtcdTlsFailed} where TLS stands in the way, so that the member did nothing
   * @throws {EtcdConnectionFailed} without `outcomeUnknown` where nothing can have been sent
   * @throws the reason of what ends the attempt early
   */
  send(request: WireRequest, options: SendOptions, behind?: Behind): Promise<WireAnswer | undefined> {
    const { lane, timeout, ending } = options;
    if (ending?.aborted) return Promise.reject(ending.reason);
    const limits: Limits = {
      ending,
      timeout: new Timeout(timeout),
      begun: options.begun,
      ref: lane !== 'background',
    };
    const borrowers = this.#borrowers[lane];
    const loan = borrowers.borrow();
    if (loan) return this.#sendOn(loan, request, limits, behind);
    const waiting = this.#waitForLoan(borrowers, limits);
    return waiting.then((lent) => lent && this.#sendOn(lent, request, limits, behind));
  }

  /** Whether a request is worth sending before the one before it is answered. */
  get pipelines(): boolean {
    return !this.pipelining.givenUp && !this.#reuse.givenUp;
  }

  /** What stands before the path of the request. */
  prefixOf({ unversioned }: WireRequest): string {
    return unversioned ? '' : this.#settings.versionPrefix;
  }

  /** Whether a request failed because its connection, which had been in use before, was closed before any answer. */
  wasStale(error: Error): boolean {
    return this.#stale.has(error);
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#connections.map((connections) => connections.destroy()));
    // Those that are still connecting, too.
    for (const socket of this.#sockets) socket.destroy();
  }

  #sendOn(loan: Loan, request: WireRequest, limits: Limits, behind: Behind | undefined): Exchange['answer'] {
    if (!behind) return this.#exchange(loan, request, limits);
    const answer = this.#exchange(loan, request, limits, () => loan.connection.writeTogether());
    const { timeout, ending, begun } = behind;
    const limitsBehind = { ending, timeout: new Timeout(timeout), begun, ref: true };
    behind.sent(this.#exchange(loan, behind.request, limitsBehind));
    return answer;
  }

  /** Sends it once. */
  #exchange(loan: Loan, request: WireRequest, limits: Limits, starts?: () => void): Exchange['answer'] {
    const { connection } = loan;
    const { method, query, form } = request;
    const path = this.prefixOf(request) + request.path;
    const failure = (error: Error, begun: boolean) => this.#failure(error, connection.isUsed && !begun);
    const exchange = new Exchange(limits, failure, { starts, answered: connection.answered, over: loan.ends });
    loan.begins();
    connection.client.dispatch(
      {
        method,
        path: query === '' ? path : `${path}?${query}`,
        headers: form === undefined ? this.#headers : this.#formHeaders,
        body: form ?? null,
        // Else nothing could be sent behind it.
        blocking: false,
        reset: this.#reuse.givenUp,
      },
      exchange,
    );
    return exchange.answer;
  }

  /** Where all connections are in use. Resolves to undefined when none was free within the timeout. */
  async #waitForLoan(borrowers: Borrowers, { ending, timeout }: Limits): Promise<Loan | undefined> {
    const patience = new Scope(ending);
    timeout.run(() => patience.abort(new Error('no connection in time')));
    try {
      return await borrowers.wait(patience);
    } catch (error) {
      if (ending?.aborted) throw error;
      return undefined;
    } finally {
      timeout.pause();
      patience.dispose();
    }
  }

  #failure(error: Error, unanswered: boolean): EtcdConnectionFailed {
    const connecting = this.#connectErrors.has(error);
    const failure = { error, connecting, distrusted: this.#distrusted.has(error) };
    const refused = whyRefused(failure, this.#settings.tls);
    if (refused) return new EtcdTlsFailed(`${refused}: ${describe(error)}`, { cause: error });
    const message = describe(error) + hint(failure, this.url);
    const failed = new EtcdConnectionFailed(message, { cause: error, outcomeUnknown: !connecting });
    if (unanswered && isClosed(error)) this.#stale.add(failed);
    return failed;
  }

  #connectionsFor(lane: Lane, pipelining: number): Connections {
    return new Connections(
      () =>
        new Connection(this.#reuse, (opened) => new Client(this.url, { ...this.#patience(lane, opened), pipelining })),
    );
  }

  /** Every attempt has a timer of its own; a long poll sends its headers at once and its body much later. */
  #patience(lane: Lane, opened: (socket: Socket) => void) {
    return { headersTimeout: 0, bodyTimeout: 0, connect: this.#connector(lane, opened) };
  }

  #connector(lane: Lane, opened: (socket: Socket) => void): buildConnector.connector {
    // Said outright, because NODE_TLS_REJECT_UNAUTHORIZED=0 changes the default.
    const tls = { ...this.#settings.tls, rejectUnauthorized: true };
    const connect = buildConnector({ timeout: CONNECT_TIMEOUT, ...tls } as buildConnector.BuildOptions);
    return (options, callback) => {
      // Typed as returning nothing; it returns the socket, and only so can one be let go of while it connects.
      const socket = connect(options, (...args) => {
        const [error] = args;
        if (error) this.#connectErrors.add(error);
        if (error && isDistrusted(socket)) this.#distrusted.add(error);
        callback(...args);
      }) as unknown as Socket;
      heedAlerts(socket);
      this.#sockets.add(socket);
      opened(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      if (lane === 'background') letGo(socket);
    };
  }
}

/** Keeps a socket from ever keeping the process alive. */
function letGo(socket: Socket): void {
  socket.unref();
  socket.ref = () => socket;
}
