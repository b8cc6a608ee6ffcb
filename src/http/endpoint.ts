import type { LookupAddress } from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { detached } from '../base/async-context.ts';
import { Scope, type Source } from '../base/cancellation.ts';
import { EtcdConnectionFailed, EtcdTlsFailed } from '../errors.ts';
import { type Address, addressOf } from './checks/endpoints.ts';
import { Connection, type ConvertError, type HttpRequest } from './connection.ts';
import { ConnectionPool, Lender } from './connection-pool.ts';
import type { ExchangeOptions } from './exchange.ts';
import type { Location } from './failover/directory.ts';
import type { WireAnswer, WireRequest } from './message.ts';
import { OptionalFeature } from './optional-feature.ts';
import type { HttpSettings } from './options.ts';
import { openTunnel } from './proxy/tunnel.ts';
import { proxyFor } from './proxy/variables.ts';
import { Timeout } from './timeout.ts';
import { describe, failOnAlert, hint, isClosed, isDistrusted, whyRefused } from './tls/refusals.ts';
import type { TlsSettings } from './tls/settings.ts';
import { type Connector, connectorOf, openTransport } from './transport.ts';

/**
 * Kinds of requests that never wait for each other:
 * - `call`: short requests other than reads of keys, such as appends, renewals and removals
 * - `read`: reads. Many of them may wait for a silent member, and must not delay a renewal.
 * - `poll`: long polls. A thousand waiters must not delay a release.
 * - `background`: work whose sockets do not keep the process alive
 *
 * The lanes `call` and `read` share their connections.
 */
export type Lane = 'call' | 'read' | 'poll' | 'background';

export interface SendOptions extends ExchangeOptions {
  readonly lane: Lane;
  /** The header of basic authentication. Default: that of the settings. */
  readonly authorization?: string | undefined;
}

/** A second request that is sent on the same connection without waiting for the first answer. */
export interface PipelinedRequest extends Omit<ExchangeOptions, 'long' | 'onStart'> {
  readonly request: WireRequest;
  /** Called once the request has been passed to the connection, with the promise of its answer. */
  readonly onSent: (answer: Promise<WireAnswer | undefined>) => void;
}

/** Maximum number of simultaneous requests in the lane `call`. */
const MAX_CALLS = 64;
/** Milliseconds. Shorter than the default `readTimeout`: a member that does not even accept a connection is probably down. */
const CONNECT_TIMEOUT = 2000;

const FORM = ['content-type', 'application/x-www-form-urlencoded'];

/** One member of the cluster. Does not retry. Only undici may send a pipelined read again, after its connection was closed. */
export class Endpoint {
  readonly url: string;
  /** The only cluster that it may belong to; undefined: it was given, and not learned. */
  readonly clusterId: string | undefined;
  readonly #settings: HttpSettings;
  readonly #address: Address;
  /** URL of the proxy to reach it by, if any. */
  readonly #proxy: string | undefined;
  readonly #lookup: LookupFunction | undefined;
  /** Names and values in turn, as undici expects them. */
  readonly #headers: string[];
  readonly #formHeaders: string[];
  /** Whether the member answers a request that was sent before the answer to the previous one. */
  readonly pipelining = new OptionalFeature(2);
  /**
   * Whether the member keeps connections open after an answer. One failure is enough: a request sent on a connection that is being
   * closed is lost, and an append cannot be repeated.
   */
  readonly #keepAlive = new OptionalFeature(1);
  readonly #pools: readonly ConnectionPool[];
  readonly #lenders: Readonly<Record<Lane, Lender>>;
  readonly #endOfChanges: (() => void) | undefined;
  readonly #sockets = new Set<Socket>();
  /** Failures to connect: a request that waited for that connection was never sent. */
  readonly #connectErrors = new WeakSet<Error>();
  /** Failures to connect because the member's certificate is not trusted. */
  readonly #distrusted = new WeakSet<Error>();
  /** See {@link wasStale}. */
  readonly #stale = new WeakSet<Error>();

  /**
   * @param addresses addresses of the host name, to connect to the first of them that accepts. If undefined, the system looks them up
   * for each connection.
   * @param clusterId see {@link Endpoint.clusterId}
   */
  constructor(
    url: string,
    settings: HttpSettings,
    { addresses, clusterId }: Partial<Pick<Location, 'addresses' | 'clusterId'>> = {},
  ) {
    this.url = url;
    this.clusterId = clusterId;
    this.#settings = settings;
    this.#address = addressOf(url);
    const { proxies } = settings;
    const isProxied = proxies && this.#address.socketPath === undefined;
    this.#proxy = isProxied ? proxyFor(this.#address.origin, proxies) : undefined;
    this.#lookup = addresses && lookupOf(addresses);
    this.#headers = settings.authorization === undefined ? [] : ['authorization', settings.authorization];
    this.#formHeaders = [...this.#headers, ...FORM];
    const shared = this.#poolFor('call', 2);
    const polls = this.#poolFor('poll', 1);
    const background = this.#poolFor('background', 1);
    this.#pools = [shared, polls, background];
    this.#endOfChanges = settings.tlsFiles?.onChange(() => {
      for (const pool of this.#pools) pool.replace();
    });
    this.#lenders = {
      call: new Lender(shared, MAX_CALLS),
      read: new Lender(shared),
      poll: new Lender(polls),
      background: new Lender(background),
    };
  }

  /**
   * Sends a request. Resolves to the complete answer, or to undefined if none came within the timeout.
   * @param pipelined for a call or a read: sent right after the request on the same connection, so that the member receives
   * both in this order
   * @throws {EtcdTlsFailed} if TLS failed, so that the member did nothing
   * @throws {EtcdConnectionFailed} if the connection failed, or a long answer stopped before its end; with `outcomeUnknown` unless the
   * request cannot have been sent
   * @throws {EtcdUnusableAnswer} if the body is too large; also any error of `onHeaders` or `onData`
   * @throws the reason of `ending` if `ending` aborts first
   */
  send(request: WireRequest, options: SendOptions, pipelined?: PipelinedRequest): Promise<WireAnswer | undefined> {
    const { lane, ending } = options;
    if (ending?.aborted) return Promise.reject(ending.reason);
    const lender = this.#lenders[lane];
    const connection = lender.lend();
    if (connection) return this.#sendOn(connection, request, options, pipelined);
    const timeout = new Timeout(options.timeout);
    const waiting = this.#waitForConnection(lender, ending, timeout);
    return waiting.then((lent) => lent && this.#sendOn(lent, request, options, pipelined, timeout));
  }

  /** Whether to send a {@link PipelinedRequest} to this member. */
  get pipelines(): boolean {
    return !this.pipelining.isDisabled && !this.#keepAlive.isDisabled;
  }

  /** Returns the path prefix of this request: the version prefix, or an empty string. */
  prefixOf({ unversioned }: WireRequest): string {
    return unversioned ? '' : this.#settings.versionPrefix;
  }

  /** Whether a request failed because a reused connection was closed before the answer to that request began. */
  wasStale(error: Error): boolean {
    return this.#stale.has(error);
  }

  /** Whether it has connections, or is connecting. */
  get isConnected(): boolean {
    return this.#sockets.size > 0;
  }

  async destroy(): Promise<void> {
    this.#endOfChanges?.();
    await Promise.all(this.#pools.map((pool) => pool.destroy()));
    // Also closes the sockets that are still connecting.
    for (const socket of this.#sockets) socket.destroy();
  }

  #sendOn(
    connection: Connection,
    request: WireRequest,
    options: SendOptions,
    pipelined: PipelinedRequest | undefined,
    timeout?: Timeout,
  ): Promise<WireAnswer | undefined> {
    const ref = options.lane !== 'background';
    const { authorization } = options;
    const encoded = this.#encode(request, authorization);
    if (!pipelined) return connection.send(encoded, options, ref, timeout);
    const onStart = (): void => connection.writeTogether();
    const answer = connection.send(encoded, { ...options, onStart }, ref, timeout);
    pipelined.onSent(connection.send(this.#encode(pipelined.request, authorization), pipelined, true));
    return answer;
  }

  #encode(request: WireRequest, authorization: string | undefined): HttpRequest {
    const { method, query, form, json } = request;
    const path = this.#address.path + this.prefixOf(request) + request.path;
    return {
      method,
      path: query === '' ? path : `${path}?${query}`,
      headers: authorization === undefined ? this.#headersOf(request) : headersWith(authorization, request),
      body: form ?? json ?? null,
    };
  }

  #headersOf({ form, json, headers }: WireRequest): string[] {
    if (headers) return headers;
    if (json !== undefined) return [...this.#headers, 'content-type', 'application/json'];
    return form === undefined ? this.#headers : this.#formHeaders;
  }

  /** Waits for a connection when the lane is at its limit. Resolves to undefined if none was free within the timeout. */
  async #waitForConnection(
    lender: Lender,
    ending: Source | undefined,
    timeout: Timeout,
  ): Promise<Connection | undefined> {
    const scope = new Scope(ending);
    timeout.run(() => scope.abort(new Error('no connection in time')));
    try {
      return await lender.wait(scope);
    } catch (error) {
      if (ending?.aborted) throw error;
      return undefined;
    } finally {
      timeout.pause();
      scope.dispose();
    }
  }

  readonly #convertError: ConvertError = (error, unanswered) => {
    const connecting = this.#connectErrors.has(error);
    const failure = { error, connecting, distrusted: this.#distrusted.has(error) };
    const refused = whyRefused(failure, this.#tls);
    if (refused) return new EtcdTlsFailed(`${refused}: ${describe(error)}`, { cause: error });
    const message = describe(error) + hint(failure, this.#address);
    const failed = new EtcdConnectionFailed(message, { cause: error, outcomeUnknown: !connecting });
    if (unanswered && isClosed(error)) this.#stale.add(failed);
    return failed;
  };

  #poolFor(lane: Lane, pipelining: number): ConnectionPool {
    return new ConnectionPool(
      () =>
        new Connection(this.#keepAlive, this.#convertError, (onSocket) =>
          openTransport(this.#address.origin, this.#connector(lane, onSocket), pipelining),
        ),
    );
  }

  get #tls(): TlsSettings {
    const { tls, tlsFiles } = this.#settings;
    return tlsFiles?.current ?? tls;
  }

  #connectorWith({ serverName, ...identity }: TlsSettings): Connector {
    const name = serverName === undefined ? {} : { servername: serverName };
    // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 changes the default.
    const tls = { ...identity, ...name, rejectUnauthorized: true };
    const lookup = this.#lookup && { lookup: this.#lookup };
    const { socketPath } = this.#address;
    const where = socketPath === undefined ? lookup : { socketPath };
    return connectorOf({ timeout: CONNECT_TIMEOUT, ...tls, ...where } as Parameters<typeof connectorOf>[0]);
  }

  #connector(lane: Lane, onSocket: (socket: Socket) => void): Connector {
    let used = this.#tls;
    let connect = this.#connectorWith(used);
    return (options, callback) => {
      if (used !== this.#tls) {
        used = this.#tls;
        connect = this.#connectorWith(used);
      }
      const fail = (error: Error): void => {
        this.#connectErrors.add(error);
        callback(error, null);
      };
      const open = (tunnel?: Socket): void => {
        const onConnect: typeof callback = (...args) => {
          const [error, connected] = args;
          if (!error) return callback(null, connected);
          if (isDistrusted(socket)) this.#distrusted.add(error);
          fail(error);
        };
        const through = tunnel && { httpSocket: tunnel };
        const socket = this.#track(lane, () => connect({ ...options, ...through }, onConnect));
        failOnAlert(socket);
        onSocket(socket);
      };
      if (this.#proxy === undefined) return open();
      const { origin } = this.#address;
      openTunnel(this.#proxy, origin, this.#connectorToProxy(lane), CONNECT_TIMEOUT).then((tunnel) => {
        // With TLS, there is one more socket on top of it.
        if (options.protocol === 'https:') return open(tunnel);
        onSocket(tunnel);
        callback(null, tunnel);
      }, fail);
    };
  }

  #connectorToProxy(lane: Lane): Connector {
    const connect = connectorOf({ timeout: CONNECT_TIMEOUT, rejectUnauthorized: true } as Parameters<
      typeof connectorOf
    >[0]);
    return (options, callback) => void this.#track(lane, () => connect(options, callback));
  }

  /** Opens a socket, and remembers it until it is closed. */
  #track(lane: Lane, open: () => unknown): Socket {
    // undici's types omit the returned socket. It is needed to unref a socket that is still connecting.
    const socket = detached(open) as Socket;
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    if (lane === 'background') unrefForGood(socket);
    return socket;
  }
}

/** Returns the headers of a request by this user. */
function headersWith(authorization: string, { form, headers }: WireRequest): string[] {
  const own = headers ?? (form === undefined ? [] : FORM);
  return ['authorization', authorization, ...own];
}

/** Returns a function for `net.connect` that finds these addresses. Node tries them one after the other if it asks for all. */
const lookupOf =
  (addresses: readonly LookupAddress[]): LookupFunction =>
  (_, { all }, callback) => {
    const [first] = addresses;
    // As Node's own function: not before this one has returned.
    process.nextTick(() => {
      if (all) callback(null, [...addresses]);
      else callback(null, first?.address ?? '', first?.family);
    });
  };

/** Makes sure that a socket never keeps the process alive, even when undici calls `ref()` on it. */
function unrefForGood(socket: Socket): void {
  socket.unref();
  socket.ref = () => socket;
}
