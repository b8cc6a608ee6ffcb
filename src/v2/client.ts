import { withCallersStack } from '../callers-stack.ts';
import { Scope } from '../cancellation.ts';
import { checkSeconds, checkSecondsOrNone } from '../checks.ts';
import { createDebug } from '../debug.ts';
import { EtcdClientClosed, EtcdClusterIdChanged, EtcdKeysLeft } from '../errors.ts';
import type { Endpoint, Lane, PipelinedRequest, SendOptions } from '../http/endpoint.ts';
import { Endpoints } from '../http/failover/endpoints.ts';
import { noAnswer } from '../http/failover/failures.ts';
import type { Repeat } from '../http/failover/round.ts';
import { warnOfMilliseconds } from '../milliseconds.ts';
import { checkOptionNames, type OptionNames } from '../option-names.ts';
import { PendingWork } from '../pending-work.ts';
import type { LockClient } from '../recipe/client.ts';
import type { LockStore } from '../recipe/store.ts';
import { Deadline } from '../time.ts';
import type {
  Append,
  CallOptions,
  Change,
  CreateOptions,
  DeleteOptions,
  GetOptions,
  KeyEvent,
  KeysApi,
  Renewed,
  RenewOptions,
  SetOptions,
  Snapshot,
  WatchOptions,
} from './keys-api.ts';
import { NO_LISTING, PipelinedListing } from './listing.ts';
import { V2LockStore } from './locks/store.ts';
import { type ClientSettings, checkOptions, type EtcdClientOptions } from './options.ts';
import { RefreshSupport } from './refresh.ts';
import { checkCall, checkRenew, checkWatch, isConditional } from './requests.ts';
import { longPoll } from './watch.ts';
import * as wire from './wire.ts';

/** Seconds until a hedged call also asks another member. etcd normally answers within milliseconds. */
const HEDGE_AFTER = 1;
const VERSION = wire.encodeInfo('/version');

const debug = createDebug('client');

/** Options of {@link EtcdClient.close}. */
export interface CloseOptions {
  /** Seconds to wait for calls under way and for pending removals of keys. Default 5. */
  readonly timeout?: number;
}

const CLOSE_OPTIONS = { timeout: true } satisfies OptionNames<CloseOptions>;

interface Sending extends SendOptions {
  readonly endpoint: Endpoint;
  readonly ending: Scope;
}

/**
 * Connects locks to an etcd cluster by its v2 HTTP API (etcd 2.2 to 3.5; 3.4 and 3.5 with `--enable-v2`). Share one client
 * between all locks of a process, and close it at the end.
 *
 * With several endpoints, the client stays with one that answers and fails over to the next one. If all fail, the error lists
 * the failure of each endpoint. The client connects at its first call. Idle connections do not keep the process alive.
 * @example
 * const client = new EtcdClient({ endpoints: ['http://127.0.0.1:2379'] });
 * const locks = new LockManager(client);
 * await client.close();
 */
export class EtcdClient implements LockClient {
  /**
   * The lock queues of this cluster, for `Lock` and `LockManager`.
   * @internal
   */
  readonly store: LockStore = new V2LockStore(this satisfies KeysApi);
  /** Directory of the lock queues: the option `lockPrefix`. */
  readonly lockPrefix: string;
  /** @internal */
  readonly cleanups = new PendingWork(() => new EtcdClientClosed('the client was closed'));
  readonly #settings: ClientSettings;
  readonly #endpoints: Endpoints;
  readonly #destroyed = new Scope();
  #clusterId: string | undefined;
  readonly #refresh = new RefreshSupport();
  #closed: Promise<void> | undefined;

  /**
   * Creates a client. Sends nothing to etcd.
   * @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its value, but never a password
   */
  constructor(options: EtcdClientOptions = {}) {
    this.#settings = checkOptions(options);
    this.lockPrefix = this.#settings.lockPrefix;
    this.#endpoints = new Endpoints(this.#settings);
  }

  /** Id of the cluster that answered last; undefined before the first answer. */
  get clusterId(): string | undefined {
    return this.#clusterId;
  }

  /** @internal */
  async get(key: string, options: GetOptions = {}): Promise<Snapshot> {
    const request = wire.encodeGet(key, options);
    return this.#call('hedged', options, async (sending) =>
      wire.decodeSnapshot(await this.#answer({ ...sending, lane: laneFor('read', sending) }, request), key),
    );
  }

  /** @internal */
  async set(key: string, value: string | undefined, options: SetOptions = {}): Promise<Change> {
    const request = wire.encodeSet(key, value, options);
    // Only here: locks create and renew their keys with a TTL that was checked before.
    warnOfMilliseconds('ttl', options.ttl ?? 0);
    const repeat = isConditional(options) ? 'safe' : 'never';
    return this.#ask(repeat, request, (answer) => wire.decodeChange(answer, key), options);
  }

  /** @internal */
  async createInOrder(dir: string, value: string | undefined, options: CreateOptions = {}): Promise<Append> {
    const create = wire.encodeCreateInOrder(dir, value, options);
    const { listing: wanted, background, signal } = options;
    return this.#call('never', options, async (sending) => {
      // No listing for a cluster that has not answered yet or is down: one request is enough to find out.
      const answers = this.#clusterId !== undefined && !this.#endpoints.rateLimit.isOutage;
      const lists = wanted && !background && answers && sending.endpoint.pipelines;
      const listing = lists
        ? new PipelinedListing(dir, sending, sending.endpoint.pipelining, this.#destroyed, signal)
        : undefined;
      try {
        const change = wire.decodeAppend(await this.#answer(sending, create, listing?.request), dir, value);
        return Object.assign(change, { listing: listing?.onAppended() ?? NO_LISTING });
      } catch (error) {
        listing?.cancel(error);
        throw error;
      }
    });
  }

  /** @internal */
  async renew(key: string, options: RenewOptions): Promise<Renewed> {
    checkRenew(key, options);
    const { prevValue, prevIndex, ttl, timeout } = options;
    const conditions = { ttl, prevValue, prevIndex };
    const limit = timeout === undefined ? Deadline.never : Deadline.after(timeout);
    const plain = wire.encodeSet(key, prevValue, conditions);
    const versionTimeout = (options.attemptTimeout ?? HEDGE_AFTER) / 2;
    let first = true;
    // A renewal may be sent to two members at once: both requests expect the same index, so only one of them can succeed.
    const attempt = async (sending: Sending): Promise<Renewed> => {
      const refresh = ttl !== null && (await this.#useRefresh(sending, first ? versionTimeout : 0));
      first = false;
      const request = refresh ? wire.encodeSet(key, undefined, { ...conditions, refresh: true }) : plain;
      const change = wire.decodeChange(await this.#answer(sending, request), key);
      return { ...change, member: sending.endpoint.url };
    };
    return this.#call('hedged', options, attempt, limit);
  }

  /** @internal */
  async delete(key: string, options: DeleteOptions = {}): Promise<Change> {
    const request = wire.encodeDelete(key, options);
    // A removal with an index may be sent to two members at once: only one of the two requests can succeed.
    const repeat = options.prevIndex === undefined ? 'safe' : 'hedged';
    return this.#ask(repeat, request, (answer) => wire.decodeChange(answer, key), options);
  }

  /** @internal */
  async watch(key: string, options: WatchOptions = {}): Promise<KeyEvent | undefined> {
    checkWatch(key, options);
    return this.#call('poll', options, (sending) =>
      longPoll(key, options, (request, poll) => {
        const onHeaders = (head: wire.WireAnswer): void => {
          this.#checkCluster(head);
          poll.onHeaders(head);
        };
        return this.#send({ ...sending, timeout: poll.timeout, onHeaders, lane: laneFor('poll', sending) }, request);
      }),
    );
  }

  /**
   * Returns the version of the member in use.
   * @internal
   */
  async version(options: CallOptions = {}): Promise<wire.Version> {
    checkCall(options);
    return this.#call('hedged', options, (sending) => this.#version(sending));
  }

  /**
   * Returns the client URLs of all members, as the member in use knows them.
   * @internal
   */
  async machines(options: CallOptions = {}): Promise<string[]> {
    checkCall(options);
    return this.#ask('hedged', wire.encodeInfo('/machines'), wire.decodeMachines, options);
  }

  /**
   * Returns the members of the cluster, as the member in use knows them.
   * @internal
   */
  async members(options: CallOptions = {}): Promise<wire.Member[]> {
    checkCall(options);
    return this.#ask('hedged', wire.encodeInfo('/members'), wire.decodeMembers, options);
  }

  /**
   * Closes the client:
   * 1. Ends calls under way. Waiters leave their queues. Holders of a `LockManager`'s lock are notified by `held.signal`.
   * 2. Waits until these calls have ended and pending removals of keys are done, up to the timeout.
   * 3. Closes every connection.
   *
   * Do not await this inside a callback that holds a `LockManager`'s lock: each would wait for the other. Release a held `Lock`
   * first, or its key stays until the TTL has passed.
   * @param options how long to wait
   * @throws {EtcdKeysLeft} if keys could not be removed in time; the message names them. The client is closed all the same.
   * @throws {TypeError | RangeError} for an unknown option, or a timeout that is not a number of seconds ≥ 0
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkOptionNames(options, CLOSE_OPTIONS);
    const { timeout = 5 } = options;
    checkSecondsOrNone('timeout', timeout);
    this.#closed ??= this.#close(timeout);
    return this.#closed;
  }

  /** Closes the client at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(timeout: number): Promise<void> {
    const left = await this.cleanups.settle(timeout);
    this.#destroyed.abort(new EtcdClientClosed('the client was closed during the call', { outcomeUnknown: true }));
    await this.#endpoints.destroy();
    if (left.length === 0) return;
    throw new EtcdKeysLeft(
      `closed after ${timeout} s; these keys may stay until their TTL has passed: ${left.join(', ')}`,
      left,
    );
  }

  #ask<T>(repeat: Repeat, request: wire.WireRequest, decode: (answer: wire.WireAnswer) => T, options: CallOptions) {
    return this.#call(repeat, options, async (sending) => decode(await this.#answer(sending, request)));
  }

  /** Makes one call. While the client is being closed, only background work may start; calls under way continue. */
  async #call<T>(
    repeat: Repeat,
    options: CallOptions,
    attempt: (sending: Sending) => Promise<T>,
    limit = Deadline.never,
  ): Promise<T> {
    const { readTimeout } = this.#settings;
    const { signal, attemptTimeout = repeat === 'hedged' ? HEDGE_AFTER : readTimeout, background = false } = options;
    checkSeconds('attemptTimeout', attemptTimeout);
    const ending = new Scope(this.#destroyed, signal);
    try {
      if (!background) this.cleanups.closing.throwIfAborted();
      ending.throwIfAborted();
      const hedgeAfter = Math.min(attemptTimeout, readTimeout);
      const timeout = repeat === 'hedged' ? readTimeout : hedgeAfter;
      const lane = background ? 'background' : 'call';
      const round = { repeat, ending, timeout, hedgeAfter, limit, ref: !background };
      return await this.#endpoints.call(round, (endpoint) => {
        const left = Math.min(timeout, limit.remaining / 1000);
        return attempt({ endpoint, lane, timeout: left, ending, onHeaders: this.#checkCluster });
      });
    } catch (error) {
      throw withCallersStack(error, signal);
    } finally {
      ending.abort('over');
      ending.dispose();
    }
  }

  async #answer(sending: Sending, request: wire.WireRequest, pipelined?: PipelinedRequest): Promise<wire.WireAnswer> {
    const answer = await this.#send(sending, request, pipelined);
    if (answer) return answer;
    throw noAnswer(sending.timeout);
  }

  async #send(
    sending: Sending,
    request: wire.WireRequest,
    pipelined?: PipelinedRequest,
  ): Promise<wire.WireAnswer | undefined> {
    const { endpoint, timeout } = sending;
    const answer = await endpoint.send(request, sending, pipelined);
    const outcome = answer?.status ?? `no answer within ${timeout} s`;
    debug('%s %s%s%s: %s', request.method, endpoint.url, endpoint.prefixOf(request), request.path, outcome);
    const { username } = this.#settings;
    const refused = answer && wire.refusal(answer, { member: endpoint.url, username, request });
    if (refused) throw refused;
    return answer;
  }

  /**
   * Checks the cluster id of an answer, and remembers it.
   * @throws {EtcdClusterIdChanged} if another one is expected
   */
  readonly #checkCluster = (head: wire.WireAnswer): void => {
    const { expectedClusterId } = this.#settings;
    const clusterId = wire.clusterIdOf(head);
    if (clusterId !== undefined && expectedClusterId !== undefined && clusterId !== expectedClusterId)
      throw new EtcdClusterIdChanged(`expected cluster ${expectedClusterId}, but cluster ${clusterId} answered`, {
        outcomeUnknown: true,
      });
    this.#clusterId = clusterId ?? this.#clusterId;
  };

  async #version(sending: Sending): Promise<wire.Version> {
    return wire.decodeVersion(await this.#answer(sending, VERSION));
  }

  /**
   * Returns whether to send a renewal to this member as a `refresh`.
   * @param timeout seconds to wait for the member's version; 0: do not ask for it
   */
  async #useRefresh(sending: Sending, timeout: number): Promise<boolean> {
    const { endpoint, ending } = sending;
    const known = this.#refresh.known(endpoint);
    // In an outage, and for another member in the same renewal, a plain write needs half as many requests.
    if (known !== undefined || timeout === 0 || this.#endpoints.rateLimit.isOutage) return known ?? false;
    const ask = (): Promise<boolean> => {
      this.#endpoints.rateLimit.count();
      // The request does not end with this call: another renewal may wait for the same answer.
      return this.#version({ ...sending, ending: this.#destroyed }).then(wire.supportsRefresh);
    };
    return this.#refresh.query(endpoint, { ask, timeout, ending });
  }
}

/** Background work stays in its lane, so that it never keeps the process alive. */
const laneFor = (kind: 'read' | 'poll', { lane }: Sending): Lane => (lane === 'background' ? lane : kind);
