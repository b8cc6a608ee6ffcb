import type { Socket } from 'node:net';
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { EtcdConnectionFailed, EtcdTlsFailed } from '../errors.ts';
import { Deadline, now, orAborted, Scope } from '../timing.ts';
import { type BusyFor, Connections } from './connections.ts';
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
  readonly signal: AbortSignal | undefined;
  /** Called as soon as the headers are there, with an answer that has no body yet. */
  readonly begun?: (head: WireAnswer) => void;
}

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
  /** Failures to connect: what waited for that connection was never sent. */
  readonly #connectErrors = new WeakSet<Error>();
  /** Those that are about the member's certificate. */
  readonly #distrusted = new WeakSet<Error>();

  constructor(url: string, settings: ClientSettings) {
    this.url = url;
    this.#settings = settings;
    this.#calls = new Connections(
      CALL_CONNECTIONS,
      () => new Client(url, { ...this.#patience('call'), pipelining: 2 }),
    );
  }

  /**
   * Resolves to the whole answer; undefined when there was none within the timeout.
   * @throws {EtcdTlsFailed} where TLS stands in the way, so that the member did nothing
   * @throws {EtcdConnectionFailed} without `outcomeUnknown` where nothing can have been sent
   * @throws the signal's reason when that aborts
   */
  async send(request: WireRequest, options: SendOptions): Promise<WireAnswer | undefined> {
    const { lane, behind } = options;
    return this.#attempt(options, (attempt) => {
      if (lane !== 'call') return this.#exchange(this.#pool(lane), request, attempt, options);
      return this.#calls.use(attempt.signal, (client, busyFor) => {
        const answer = this.#exchange(client, request, attempt, { busyFor, ...options });
        if (behind) behind.sent(this.#sendBehind(behind, client, busyFor));
        return answer;
      });
    });
  }

  async destroy(): Promise<void> {
    await Promise.all([this.#calls, ...this.#lanes.values()].map((lane) => lane.destroy()));
    // A pool forgets connections it made while others failed to connect.
    for (const socket of this.#sockets) socket.destroy();
  }

  #sendBehind(behind: Behind, client: Client, busyFor: BusyFor): Promise<WireAnswer | undefined> {
    const answer = this.#attempt({ ...behind, lane: 'call' }, (attempt) =>
      this.#exchange(client, behind.request, attempt, { ...behind, busyFor }),
    );
    busyFor(answer);
    return answer;
  }

  /** Ends an attempt in time; what went wrong is told as {@link Endpoint.send} promises. */
  async #attempt<T>(
    { lane, timeout, signal }: Omit<SendOptions, 'begun' | 'behind'>,
    exchange: (attempt: Scope) => Promise<T>,
  ): Promise<T | undefined> {
    const timedOut = Symbol('timed out');
    const attempt = new Scope(signal).abortAt(Deadline.after(timeout), () => timedOut, { ref: lane !== 'background' });
    try {
      attempt.signal.throwIfAborted();
      return await exchange(attempt);
    } catch (error) {
      if (attempt.signal.reason === timedOut) return undefined;
      if (attempt.signal.aborted) throw attempt.signal.reason;
      throw this.#failure(error);
    } finally {
      attempt.dispose();
    }
  }

  async #exchange(
    dispatcher: Dispatcher,
    request: WireRequest,
    attempt: Scope,
    { begun, busyFor }: Pick<SendOptions, 'begun'> & { readonly busyFor?: BusyFor },
  ): Promise<WireAnswer> {
    const { authorization } = this.#settings;
    const query = request.query.toString();
    const sentAt = now();
    const sent = dispatcher.request({
      method: request.method,
      path: query === '' ? request.path : `${request.path}?${query}`,
      headers: {
        ...(authorization === undefined ? {} : { authorization }),
        ...(request.form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
      },
      body: request.form?.toString() ?? null,
      // Else nothing could be sent behind it.
      blocking: false,
      signal: attempt.signal,
    });
    busyFor?.(sent);
    // While it connects, undici does not see the signal: it would end later, unsent.
    const response = await orAborted(sent, attempt.signal);
    const head = { status: response.statusCode, headers: response.headers, body: '', sentAt };
    try {
      begun?.(head);
    } catch (error) {
      attempt.abort(error); // nobody will read the body: let the connection go
      throw error;
    }
    return { ...head, body: await response.body.text() };
  }

  #failure(error: unknown): EtcdConnectionFailed {
    const isIn = (set: WeakSet<Error>): boolean => error instanceof Error && set.has(error);
    const [connecting, distrusted] = [isIn(this.#connectErrors), isIn(this.#distrusted)];
    const failure = { error, connecting, distrusted };
    const refused = whyRefused(failure, this.#settings.tls);
    if (refused) return new EtcdTlsFailed(`${refused}: ${describe(error)}`, { cause: error });
    const message = describe(error) + hint(failure, this.url);
    return new EtcdConnectionFailed(message, { cause: error, outcomeUnknown: !connecting });
  }

  #pool(lane: Lane): Pool {
    const pool = this.#lanes.get(lane) ?? new Pool(this.url, { ...this.#patience(lane), pipelining: 1 });
    this.#lanes.set(lane, pool);
    return pool;
  }

  /** Every attempt has a timer of its own; a long poll sends its headers at once and its body much later. */
  #patience(lane: Lane) {
    return { headersTimeout: 0, bodyTimeout: 0, connect: this.#connector(lane) };
  }

  #connector(lane: Lane): buildConnector.connector {
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
