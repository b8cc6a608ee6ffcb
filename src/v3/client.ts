import { Scope } from '../cancellation.ts';
import { createDebug } from '../debug.ts';
import { EtcdUnusableAnswer } from '../errors.ts';
import { type Attempt, type CloseOptions, Cluster, type ClusterCall } from '../http/cluster.ts';
import type { Endpoint, Lane } from '../http/endpoint.ts';
import { noAnswer } from '../http/failover/failures.ts';
import type { Repeat } from '../http/failover/round.ts';
import type { WireAnswer, WireRequest } from '../http/message.ts';
import type { PendingWork } from '../pending-work.ts';
import type { LockClient } from '../recipe/client.ts';
import type { LockStore } from '../recipe/store.ts';
import { Deadline } from '../time.ts';
import { decodeBody, TokenRefused } from './errors.ts';
import { Leases } from './locks/leases.ts';
import { LossWatch } from './locks/loss-watch.ts';
import { V3LockStore } from './locks/store.ts';
import { decodeHeader, Fields, type Header, type Json, unusable } from './messages.ts';
import { checkV3Options, type V3ClientOptions, type V3Settings } from './options.ts';
import { LockRequests } from './requests.ts';
import { gatewayPrefix, VERSION } from './version.ts';

const debug = createDebug('client');

/** Seconds for which closing the client waits for the ends of its leases. */
const LEASES = 1;

/** A member without a leader then refuses at once, instead of after seven seconds of silence. */
const NEEDS_LEADER = ['grpc-metadata-hasleader', 'true'];

/** How one call is made. */
export interface CallOptions extends ClusterCall {
  /** Default `call`, or `background` for work in the background. */
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
  /** Like `ask`, for messages whose answer has no end. Resolves when the stream has ended; `over` ends it. */
  stream(path: string, messages: readonly Json[], onData: (chunk: Buffer) => void, over: Scope): Promise<void>;
}

/** Connects locks to an etcd cluster by the JSON gateway of its v3 API (etcd 3.3 and later). */
export class V3Client implements LockClient {
  readonly store: LockStore;
  readonly lockPrefix: string;
  readonly requests = new LockRequests(this);
  readonly leases = new Leases(this);
  readonly losses = new LossWatch(this);
  readonly #settings: V3Settings;
  readonly #cluster: Cluster;
  readonly #prefixes = new WeakMap<Endpoint, string>();
  readonly #tokens = new WeakMap<Endpoint, string>();

  /** @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its value, but never a password */
  constructor(options: V3ClientOptions = {}) {
    this.#settings = checkV3Options(options);
    this.lockPrefix = this.#settings.lockPrefix;
    this.#cluster = new Cluster(this.#settings);
    this.store = new V3LockStore(this);
  }

  get clusterId(): string | undefined {
    return this.#cluster.id;
  }

  get pending(): PendingWork {
    return this.#cluster.pending;
  }

  /** Ends all work when the client is closed. */
  get destroyed(): Scope {
    return this.#cluster.destroyed;
  }

  /** Makes one call: `attempt` asks the members in turn until one answers. */
  call<T>(repeat: Repeat, options: CallOptions, attempt: (member: Member) => Promise<T>): Promise<T> {
    return this.#cluster.call(repeat, options, (one) =>
      this.#withToken({ ...one, lane: options.lane ?? one.lane }, attempt),
    );
  }

  close(options: CloseOptions = {}): Promise<void> {
    // The leases end after their entries. They would also expire, so this need not succeed.
    return this.#cluster.close(options, (until) =>
      this.leases.settle(new Deadline(Math.min(until.at, Deadline.after(LEASES).at))),
    );
  }

  /** A token is valid on one member, for some minutes: a new one is fetched when the old one is refused. */
  async #withToken<T>(one: Attempt, attempt: (member: Member) => Promise<T>): Promise<T> {
    const member = await this.#member(one);
    try {
      return await attempt(member);
    } catch (error) {
      if (!(error instanceof TokenRefused) || this.#settings.password === undefined) throw error;
      this.#tokens.delete(one.endpoint);
      return attempt(await this.#member(one));
    }
  }

  async #member(one: Attempt): Promise<Member> {
    const { endpoint } = one;
    const prefix = this.#prefixes.get(endpoint) ?? (await this.#findPrefix(one));
    const { username, password } = this.#settings;
    const requestFor = (path: string, messages: readonly Json[], token?: string): WireRequest => ({
      method: 'POST',
      path: prefix + path,
      query: '',
      json: messages.map((message) => JSON.stringify(message)).join('\n'),
      headers: token === undefined ? NEEDS_LEADER : [...NEEDS_LEADER, 'authorization', token],
    });
    let token = this.#tokens.get(endpoint);
    if (token === undefined && password !== undefined) {
      const request = requestFor('/auth/authenticate', [{ name: username, password }]);
      const answer = await this.#send(one, request);
      token = new Fields(answer, decodeBody(answer)).text('token');
      this.#tokens.set(endpoint, token);
    }
    return {
      url: endpoint.url,
      ask: async (path, message) => {
        const answer = await this.#send(one, requestFor(path, [message], token));
        const body = new Fields(answer, decodeBody(answer));
        // Streams with one answer, such as a keep-alive, wrap it.
        const fields = body.optional('result') ?? body;
        const header = decodeHeader(fields);
        this.#checkCluster(header);
        const { sentAt } = answer;
        return { fields, header, sentAt, member: endpoint.url, unusable: (why) => unusable(answer, why) };
      },
      stream: async (path, messages, onData, over) => {
        const ending = new Scope(one.ending, over);
        const unlimited = { ...one, ending, timeout: Number.POSITIVE_INFINITY };
        try {
          await this.#send(unlimited, requestFor(path, messages, token), onData);
        } finally {
          ending.dispose();
        }
      },
    };
  }

  async #findPrefix(one: Attempt): Promise<string> {
    const prefix = gatewayPrefix(await this.#send(one, VERSION));
    this.#prefixes.set(one.endpoint, prefix);
    return prefix;
  }

  async #send(
    { endpoint, ending, lane, timeout }: Attempt,
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
    if (clusterId === undefined) throw new EtcdUnusableAnswer('the answer names no cluster', { outcomeUnknown: true });
    this.#cluster.checkId(clusterId);
  }
}
