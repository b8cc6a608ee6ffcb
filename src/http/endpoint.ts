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
import { MemberSockets } from './sockets/member-sockets.ts';
import { Timeout } from './timeout.ts';
import { describe, hint, isClosed, whyRefused } from './tls/refusals.ts';
import { openTransport } from './transport.ts';

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

const FORM = ['content-type', 'application/x-www-form-urlencoded'];

/** One member of the cluster. Does not retry. Only undici may send a pipelined read again, after its connection was closed. */
export class Endpoint {
  readonly url: string;
  /** The only cluster that it may belong to; undefined: it was given, and not learned. */
  readonly clusterId: string | undefined;
  readonly #settings: HttpSettings;
  readonly #address: Address;
  readonly #sockets: MemberSockets;
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
    this.#sockets = new MemberSockets(this.#address, settings, addresses);
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
    return this.#sockets.areThere;
  }

  async destroy(): Promise<void> {
    this.#endOfChanges?.();
    await Promise.all(this.#pools.map((pool) => pool.destroy()));
    this.#sockets.destroy();
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
    const connecting = this.#sockets.isFailureToConnect(error);
    const failure = { error, connecting, distrusted: this.#sockets.isDistrust(error) };
    const refused = whyRefused(failure, this.#sockets.tls);
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
          openTransport(this.#address.origin, this.#sockets.connector(lane === 'background', onSocket), pipelining),
        ),
    );
  }
}

/** Returns the headers of a request by this user. */
function headersWith(authorization: string, { form, headers }: WireRequest): string[] {
  const own = headers ?? (form === undefined ? [] : FORM);
  return ['authorization', authorization, ...own];
}
