import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { EtcdConnectionFailed, EtcdTlsFailed } from '../errors.ts';
import { Deadline, ignore, Scope, type Source } from '../timing.ts';
import { Connections, type Loan } from './connections.ts';
import { Exchange, type ExchangeOptions } from './exchange.ts';
import type { ClientSettings } from './options.ts';
import { describe, heedAlerts, hint, isDistrusted, whyRefused } from './tls.ts';
import type { WireAnswer, WireRequest } from './wire.ts';

/**
 * Connections are of four kinds that never wait for each other: short calls, reads (of which many may be silent for long,
 * and must not hold up a renewal), long polls (so that a thousand waiters do not hold up a release), and background work,
 * whose sockets do not keep the process alive.
 */
export type Lane = 'call' | 'read' | 'poll' | 'background';

interface Limits {
  /** Seconds until the attempt is given up. */
  readonly timeout: number;
  /** Ends the attempt. */
  readonly ending: Source | undefined;
  /** Called as soon as the headers are there, with an answer that has no body yet. */
  readonly begun?: (head: WireAnswer) => void;
}

type ExchangeLimits = Omit<ExchangeOptions, 'failure'>;

export interface SendOptions extends Limits {
  readonly lane: Lane;
  /** On the lane for calls: what goes out right behind it on the same connection, so that the member takes both in this order. */
  readonly behind?: Behind;
}

/** A request that does not wait for the answer to the one before it. */
export interface Behind extends Limits {
  readonly request: WireRequest;
  /** Told of its answer as soon as it is on its way. */
  readonly sent: (answer: Promise<WireAnswer | undefined>) => void;
}

const CALL_CONNECTIONS = 64;
/** A member that does not even accept a connection is given up sooner than one that is slow to answer. */
const CONNECT_TIMEOUT = 2000;

/** One member: sends one request at a time of asking, once. */
export class Endpoint {
  readonly url: string;
  readonly #settings: ClientSettings;
  readonly #calls: Connections;
  readonly #lanes = new Map<Lane, Pool>();
  readonly #sockets = new Set<Socket>();
  readonly #socketOf = new WeakMap<Client, Socket>();
  /** Failures to connect: what waited for that connection was never sent. */
  readonly #connectErrors = new WeakSet<Error>();
  /** Those that are about the member's certificate. */
  readonly #distrusted = new WeakSet<Error>();

  constructor(url: string, settings: ClientSettings) {
    this.url = url;
    this.#settings = settings;
    this.#calls = new Connections(CALL_CONNECTIONS, () => {
      const opened = (socket: Socket): void => void this.#socketOf.set(client, socket);
      const client = new Client(url, { ...this.#patience('call', opened), pipelining: 2 });
      return client;
    });
  }

  /**
   * Resolves to the whole answer; undefined when there was none within the timeout.
   * @throws {EtcdTlsFailed} where TLS stands in the way, so that the member did nothing
   * @throws {EtcdConnectionFailed} without `outcomeUnknown` where nothing can have been sent
   * @throws the reason of what ends the attempt early
   */
  async send(request: WireRequest, options: SendOptions): Promise<WireAnswer | undefined> {
    const { lane, timeout, ending, behind } = options;
    if (ending?.aborted) throw ending.reason;
    const limits = { ending, deadline: Deadline.after(timeout), begun: options.begun };
    if (lane !== 'call')
      return this.#exchange(this.#pool(lane), request, { ...limits, ref: lane !== 'background' }).answer;
    const loan = this.#calls.take() ?? (await this.#waitForLoan(limits));
    if (!loan) return undefined;
    const starts = behind && (() => writeTogether(this.#socketOf.get(loan.client)));
    const answer = this.#exchangeOn(loan, request, { ...limits, starts });
    behind?.sent(this.#sendBehind(behind, loan));
    return answer;
  }

  async destroy(): Promise<void> {
    await Promise.all([this.#calls, ...this.#lanes.values()].map((lane) => lane.destroy()));
    // A pool forgets connections it made while others failed to connect.
    for (const socket of this.#sockets) socket.destroy();
  }

  #sendBehind({ request, timeout, ending, begun }: Behind, loan: Loan): Exchange['answer'] {
    return this.#exchangeOn(loan, request, { ending, deadline: Deadline.after(timeout), begun });
  }

  #exchangeOn(loan: Loan, request: WireRequest, limits: Omit<ExchangeLimits, 'ref'>): Exchange['answer'] {
    loan.begins();
    return this.#exchange(loan.client, request, { ...limits, ref: true, over: loan.ends }).answer;
  }

  /** Sends it once. */
  #exchange(dispatcher: Dispatcher, { method, path, query, form }: WireRequest, limits: ExchangeLimits): Exchange {
    const { authorization } = this.#settings;
    const exchange = new Exchange({ ...limits, failure: this.#failure });
    dispatcher.dispatch(
      {
        method,
        path: query === '' ? path : `${path}?${query}`,
        headers: {
          ...(authorization === undefined ? {} : { authorization }),
          ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
        },
        body: form ?? null,
        // Else nothing could be sent behind it.
        blocking: false,
      },
      exchange,
    );
    return exchange;
  }

  /** Where all connections are in use. Resolves to undefined when none was free by the deadline. */
  async #waitForLoan({ ending, deadline }: Omit<ExchangeLimits, 'ref'>): Promise<Loan | undefined> {
    const patience = new Scope(ending).abortAt(deadline, () => new Error('no connection in time'));
    try {
      return await this.#calls.wait(patience);
    } catch (error) {
      if (ending?.aborted) throw error;
      return undefined;
    } finally {
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
    const pool = this.#lanes.get(lane) ?? new Pool(this.url, { ...this.#patience(lane), pipelining: 1 });
    this.#lanes.set(lane, pool);
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
