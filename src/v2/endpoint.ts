import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { EtcdConnectionFailed, EtcdTlsFailed } from '../errors.ts';
import { ignore, Scope, type Source } from '../timing.ts';
import { Borrowers, Connections, type Loan } from './connections.ts';
import { Exchange, type Hooks, type Limits } from './exchange.ts';
import type { ClientSettings } from './options.ts';
import { Timeout } from './timeout.ts';
import { describe, heedAlerts, hint, isDistrusted, whyRefused } from './tls.ts';
import { Trial } from './trial.ts';
import type { WireAnswer, WireRequest } from './wire.ts';

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

/** How many there are at a time. */
const MOST = { call: 64, read: Number.POSITIVE_INFINITY };
/** A member that does not even accept a connection is given up sooner than one that is slow to answer. */
const CONNECT_TIMEOUT = 2000;

/** One member: sends one request at a time of asking, once. */
export class Endpoint {
  readonly url: string;
  readonly #settings: ClientSettings;
  /** Names and values in turn, as undici takes them. */
  readonly #headers: string[];
  readonly #formHeaders: string[];
  /** Whether the member answers a request that is sent before the one before it is answered. */
  readonly pipelining = new Trial();
  readonly #connections: Connections;
  readonly #borrowers: Readonly<Record<'call' | 'read', Borrowers>>;
  readonly #pools = new Map<Lane, Pool>();
  readonly #sockets = new Set<Socket>();
  readonly #socketOf = new WeakMap<Client, Socket>();
  /** Failures to connect: what waited for that connection was never sent. */
  readonly #connectErrors = new WeakSet<Error>();
  /** Those that are about the member's certificate. */
  readonly #distrusted = new WeakSet<Error>();

  constructor(url: string, settings: ClientSettings) {
    this.url = url;
    this.#settings = settings;
    this.#headers = settings.authorization === undefined ? [] : ['authorization', settings.authorization];
    this.#formHeaders = [...this.#headers, 'content-type', 'application/x-www-form-urlencoded'];
    this.#connections = new Connections(() => {
      const opened = (socket: Socket): void => void this.#socketOf.set(client, socket);
      const client = new Client(url, { ...this.#patience('call', opened), pipelining: 2 });
      return client;
    });
    this.#borrowers = {
      call: new Borrowers(this.#connections, MOST.call),
      read: new Borrowers(this.#connections, MOST.read),
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
    if (lane !== 'call' && lane !== 'read') return this.#exchange(this.#pool(lane), request, limits).answer;
    const borrowers = this.#borrowers[lane];
    const loan = borrowers.borrow();
    if (loan) return this.#sendOn(loan, request, limits, behind);
    const waiting = this.#waitForLoan(borrowers, limits);
    return waiting.then((lent) => lent && this.#sendOn(lent, request, limits, behind));
  }

  /** What stands before the path of the request. */
  prefixOf({ unversioned }: WireRequest): string {
    return unversioned ? '' : this.#settings.versionPrefix;
  }

  async destroy(): Promise<void> {
    await Promise.all([this.#connections, ...this.#pools.values()].map((connections) => connections.destroy()));
    // A pool forgets connections it made while others failed to connect.
    for (const socket of this.#sockets) socket.destroy();
  }

  #sendOn(loan: Loan, request: WireRequest, limits: Limits, behind: Behind | undefined): Exchange['answer'] {
    if (!behind) return this.#exchangeOn(loan, request, limits);
    const starts = (): void => writeTogether(this.#socketOf.get(loan.client));
    const answer = this.#exchangeOn(loan, request, limits, starts);
    const { timeout, ending, begun } = behind;
    const limitsBehind = { ending, timeout: new Timeout(timeout), begun, ref: true };
    behind.sent(this.#exchangeOn(loan, behind.request, limitsBehind));
    return answer;
  }

  #exchangeOn(loan: Loan, request: WireRequest, limits: Limits, starts?: () => void): Exchange['answer'] {
    loan.begins();
    return this.#exchange(loan.client, request, limits, { starts, over: loan.ends }).answer;
  }

  /** Sends it once. */
  #exchange(dispatcher: Dispatcher, request: WireRequest, limits: Limits, hooks?: Hooks): Exchange {
    const { method, query, form } = request;
    const path = this.prefixOf(request) + request.path;
    const exchange = new Exchange(limits, this.#failure, hooks);
    dispatcher.dispatch(
      {
        method,
        path: query === '' ? path : `${path}?${query}`,
        headers: form === undefined ? this.#headers : this.#formHeaders,
        body: form ?? null,
        // Else nothing could be sent behind it.
        blocking: false,
      },
      exchange,
    );
    return exchange;
  }

  /** Where all connections are in use. Resolves to undefined when none was free within the timeout. */
  async #waitForLoan(borrowers: Borrowers, { ending, timeout }: Limits): Promise<Loan | undefined> {
    const patience = new Scope(ending);
    const stop = timeout.run(() => patience.abort(new Error('no connection in time')));
    try {
      return await borrowers.wait(patience);
    } catch (error) {
      if (ending?.aborted) throw error;
      return undefined;
    } finally {
      stop();
      patience.dispose();
    }
  }

  readonly #failure = (error: Error): EtcdConnectionFailed => {
    const connecting = this.#connectErrors.has(error);
    const failure = { error, connecting, distrusted: this.#distrusted.has(error) };
    const refused = whyRefused(failure, this.#settings.tls);
    if (refused) return new EtcdTlsFailed(`${refused}: ${describe(error)}`, { cause: error });
    const message = describe(error) + hint(failure, this.url);
    return new EtcdConnectionFailed(message, { cause: error, outcomeUnknown: !connecting });
  };

  #pool(lane: Lane): Pool {
    const pool = this.#pools.get(lane) ?? new Pool(this.url, { ...this.#patience(lane), pipelining: 1 });
    this.#pools.set(lane, pool);
    return pool;
  }

  /** Every attempt has a timer of its own; a long poll sends its headers at once and its body much later. */
  #patience(lane: Lane, opened?: (socket: Socket) => void) {
    return { headersTimeout: 0, bodyTimeout: 0, connect: this.#connector(lane, opened) };
  }

  #connector(lane: Lane, opened: (socket: Socket) => void = ignore): buildConnector.connector {
    const connect = buildConnector({ timeout: CONNECT_TIMEOUT, ...this.#settings.tls } as buildConnector.BuildOptions);
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

/** What is written to the socket in this turn goes out as one. */
function writeTogether(socket: Socket | undefined): void {
  if (!socket) return;
  socket.cork();
  process.nextTick(() => socket.uncork());
}

/** Keeps a socket from ever keeping the process alive. */
function letGo(socket: Socket): void {
  socket.unref();
  socket.ref = () => socket;
}
