import { withCallersStack } from '../callers-stack.ts';
import { Scope, type Source } from '../cancellation.ts';
import { checkSecondsOrNone } from '../checks.ts';
import { createDebug } from '../debug.ts';
import { EtcdClientClosed, EtcdClusterIdChanged, EtcdKeysLeft, EtcdUnusableAnswer } from '../errors.ts';
import type { Endpoint, Lane } from '../http/endpoint.ts';
import { Endpoints } from '../http/failover/endpoints.ts';
import { noAnswer } from '../http/failover/failures.ts';
import type { Repeat } from '../http/failover/round.ts';
import type { WireAnswer, WireRequest } from '../http/message.ts';
import { PendingWork } from '../pending-work.ts';
import type { LockClient } from '../recipe/client.ts';
import type { LockStore } from '../recipe/store.ts';
import { Deadline } from '../time.ts';
import { decodeBody, TokenRefused } from './errors.ts';
import { Leases } from './locks/leases.ts';
import { V3LockStore } from './locks/store.ts';
import { decodeHeader, Fields, type Header, type Json, unusable } from './messages.ts';
import { checkV3Options, type V3ClientOptions, type V3Settings } from './options.ts';
import { LockRequests } from './requests.ts';
import { gatewayPrefix, VERSION } from './version.ts';

const debug = createDebug('client');

/** Seconds until a hedged call also asks another member. etcd normally answers within milliseconds. */
const HEDGE_AFTER = 1;

/** Seconds for which closing the client waits for the ends of its leases. */
const LEASES = 1;

/** A member without a leader then refuses at once, instead of after seven seconds of silence. */
const NEEDS_LEADER = ['grpc-metadata-hasleader', 'true'];

/** How one call is made. */
export interface CallOptions {
  readonly signal?: Source | undefined;
  /** Whether the work may go on while the client is being closed, and must not keep the process alive. */
  readonly background?: boolean | undefined;
  /** Seconds until the next member is asked. */
  readonly attemptTimeout?: number | undefined;
  /** Seconds until the call fails. */
  readonly timeout?: number | undefined;
  readonly lane?: Lane;
}

/** An answer, with its header checked. */
export interface Answer {
  readonly fields: Fields;
  readonly header: Header;
  /** When the request was sent: milliseconds on the monotonic clock. */
  readonly sentAt: number;
  readonly member: string;
  /** Returns the error for an answer that contradicts the request. */
  readonly unusable: (why: string) => Error;
}

/** Asks the member of one attempt. */
export interface Member {
  readonly url: string;
  /** Sends a message to a path below the gateway's prefix, such as `/kv/txn`. */
  ask(path: string, message: Json): Promise<Answer>;
  /** Like `ask`, for an answer that has no end. Resolves when the stream has ended; `over` ends it. */
  stream(path: string, message: Json, onData: (chunk: Buffer) => void, over: Scope): Promise<void>;
}

/** Connects locks to an etcd cluster by the JSON gateway of its v3 API (etcd 3.3 and later). */
export class V3Client implements LockClient {
  readonly store: LockStore;
  readonly lockPrefix: string;
  readonly pending = new PendingWork(() => new EtcdClientClosed('the client was closed'));
  readonly destroyed = new Scope();
  readonly requests = new LockRequests(this);
  readonly leases = new Leases(this);
  readonly #settings: V3Settings;
  readonly #endpoints: Endpoints;
  readonly #prefixes = new WeakMap<Endpoint, string>();
  readonly #tokens = new WeakMap<Endpoint, string>();
  #clusterId: string | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: V3ClientOptions = {}) {
    this.#settings = checkV3Options(options);
    this.lockPrefix = this.#settings.lockPrefix;
    this.#endpoints = new Endpoints(this.#settings);
    this.store = new V3LockStore(this);
  }

  get clusterId(): string | undefined {
    return this.#clusterId;
  }

  /** Makes one call: `attempt` asks the members in turn until one answers. */
  async call<T>(repeat: Repeat, options: CallOptions, attempt: (member: Member) => Promise<T>): Promise<T> {
    const { readTimeout } = this.#settings;
    const { signal, background = false, attemptTimeout = repeat === 'hedged' ? HEDGE_AFTER : readTimeout } = options;
    const limit = options.timeout === undefined ? Deadline.never : Deadline.after(options.timeout);
    const lane = options.lane ?? (background ? 'background' : 'call');
    const ending = new Scope(this.destroyed, signal);
    try {
      if (!background) this.pending.closing.throwIfAborted();
      ending.throwIfAborted();
      const hedgeAfter = Math.min(attemptTimeout, readTimeout);
      const timeout = repeat === 'hedged' ? readTimeout : hedgeAfter;
      const round = { repeat, ending, timeout, hedgeAfter, limit, ref: !background };
      return await this.#endpoints.call(round, (endpoint) => {
        const seconds = Math.min(timeout, limit.remaining / 1000);
        return this.#withToken(endpoint, { ending, lane, timeout: seconds }, attempt);
      });
    } catch (error) {
      throw withCallersStack(error, signal);
    } finally {
      ending.abort('over');
      ending.dispose();
    }
  }

  async close({ timeout = 5 }: { readonly timeout?: number } = {}): Promise<void> {
    checkSecondsOrNone('timeout', timeout);
    this.#closed ??= this.#close(timeout);
    return this.#closed;
  }

  async #close(timeout: number): Promise<void> {
    const until = Deadline.after(timeout);
    const left = await this.pending.settle(timeout);
    // The leases end after their entries. They would also expire, so this need not succeed.
    await this.leases.settle(new Deadline(Math.min(until.at, Deadline.after(LEASES).at)));
    this.destroyed.abort(new EtcdClientClosed('the client was closed during the call', { outcomeUnknown: true }));
    await this.#endpoints.destroy();
    if (left.length === 0) return;
    throw new EtcdKeysLeft(
      `closed after ${timeout} s; these keys may stay until their TTL has passed: ${left.join(', ')}`,
      left,
    );
  }

  /** A token is valid on one member, for some minutes: a new one is fetched when the old one is refused. */
  async #withToken<T>(endpoint: Endpoint, limits: AttemptLimits, attempt: (member: Member) => Promise<T>): Promise<T> {
    const member = await this.#member(endpoint, limits);
    try {
      return await attempt(member);
    } catch (error) {
      if (!(error instanceof TokenRefused) || this.#settings.password === undefined) throw error;
      this.#tokens.delete(endpoint);
      return attempt(await this.#member(endpoint, limits));
    }
  }

  async #member(endpoint: Endpoint, limits: AttemptLimits): Promise<Member> {
    const prefix = this.#prefixes.get(endpoint) ?? (await this.#findPrefix(endpoint, limits));
    const { username, password } = this.#settings;
    const requestFor = (path: string, message: Json, token?: string): WireRequest => ({
      method: 'POST',
      path: prefix + path,
      query: '',
      json: JSON.stringify(message),
      headers: token === undefined ? NEEDS_LEADER : [...NEEDS_LEADER, 'authorization', token],
    });
    let token = this.#tokens.get(endpoint);
    if (token === undefined && password !== undefined) {
      const request = requestFor('/auth/authenticate', { name: username, password });
      const answer = await this.#send(endpoint, limits, request);
      token = new Fields(answer, decodeBody(answer)).text('token');
      this.#tokens.set(endpoint, token);
    }
    return {
      url: endpoint.url,
      ask: async (path, message) => {
        const answer = await this.#send(endpoint, limits, requestFor(path, message, token));
        const body = new Fields(answer, decodeBody(answer));
        // Streams with one answer, such as a keep-alive, wrap it.
        const fields = body.optional('result') ?? body;
        const header = decodeHeader(fields);
        this.#checkCluster(header);
        const { sentAt } = answer;
        return { fields, header, sentAt, member: endpoint.url, unusable: (why) => unusable(answer, why) };
      },
      stream: async (path, message, onData, over) => {
        const ending = new Scope(limits.ending, over);
        const unlimited = { ...limits, ending, timeout: Number.POSITIVE_INFINITY };
        try {
          await this.#send(endpoint, unlimited, requestFor(path, message, token), onData);
        } finally {
          ending.dispose();
        }
      },
    };
  }

  async #findPrefix(endpoint: Endpoint, limits: AttemptLimits): Promise<string> {
    const prefix = gatewayPrefix(await this.#send(endpoint, limits, VERSION));
    this.#prefixes.set(endpoint, prefix);
    return prefix;
  }

  async #send(
    endpoint: Endpoint,
    { ending, lane, timeout }: AttemptLimits,
    request: WireRequest,
    onData?: (chunk: Buffer) => void,
  ): Promise<WireAnswer> {
    const answer = await endpoint.send(request, { ending, lane, timeout, onData });
    debug('%s %s%s: %s', request.method, endpoint.url, request.path, answer?.status ?? `no answer within ${timeout} s`);
    if (answer) return answer;
    throw noAnswer(timeout);
  }

  /** @throws {EtcdClusterIdChanged} if another cluster is expected */
  #checkCluster({ clusterId }: Header): void {
    const { expectedClusterId } = this.#settings;
    if (clusterId === undefined) throw new EtcdUnusableAnswer('the answer names no cluster', { outcomeUnknown: true });
    if (expectedClusterId !== undefined && clusterId !== expectedClusterId)
      throw new EtcdClusterIdChanged(`expected cluster ${expectedClusterId}, but cluster ${clusterId} answered`, {
        outcomeUnknown: true,
      });
    this.#clusterId = clusterId;
  }
}

interface AttemptLimits {
  readonly ending: Scope;
  readonly lane: Lane;
  /** Seconds. */
  readonly timeout: number;
}
