import { Scope } from '../cancellation.ts';
import { checkSeconds, checkSecondsOrNone } from '../checks.ts';
import { createDebug } from '../debug.ts';
import { EtcdClientClosed, EtcdClusterIdChanged, EtcdConnectionFailed, EtcdKeysLeft } from '../errors.ts';
import type { Behind, Endpoint, Lane, SendOptions } from '../http/endpoint.ts';
import { Endpoints } from '../http/failover/endpoints.ts';
import type { Repeat } from '../http/failover/round.ts';
import { PendingWork } from '../pending-work.ts';
import type { LockClient, LockStore } from '../recipe/store.ts';
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
  RenewOptions,
  SetOptions,
  Snapshot,
  WatchOptions,
} from './keys-api.ts';
import { ListingBehind, NO_LISTING } from './listing.ts';
import { V2LockStore } from './locks/store.ts';
import { type ClientSettings, checkOptions, type EtcdClientOptions } from './options.ts';
import { RefreshSupport } from './refresh.ts';
import { checkRenew, checkWatch, isConditional } from './requests.ts';
import { longPoll } from './watch.ts';
import * as wire from './wire.ts';

/** Seconds a hedged call waits for one member before it asks another one, too: etcd answers within milliseconds. */
const PATIENCE = 1;
const VERSION = wire.encodeInfo('/version');

const debug = createDebug('client');

export interface CloseOptions {
  /** Seconds to wait for calls under way and for removals still owed. Default 5. */
  readonly timeout?: number;
}

interface Sending extends SendOptions {
  readonly endpoint: Endpoint;
  readonly ending: Scope;
}

/**
 * {@link KeysApi} over etcd's v2 HTTP API (etcd 2.2 to 3.5; 3.4 and 3.5 with `--enable-v2`).
 *
 * With several endpoints it stays with one that answers and goes to the next when it does not; an error keeps what each
 * of them failed with. It connects at the first call. Idle connections do not keep the process alive.
 */
export class EtcdClient implements KeysApi, LockClient {
  /** Where the queues of locks are; for `Lock` and `LockManager`. */
  readonly store: LockStore = new V2LockStore(this);
  readonly lockPrefix: string;
  readonly cleanups = new PendingWork(() => new EtcdClientClosed('the client was closed'));
  readonly #settings: ClientSettings;
  readonly #endpoints: Endpoints;
  readonly #destroyed = new Scope();
  #clusterId: string | undefined;
  readonly #refresh = new RefreshSupport();
  #closed: Promise<void> | undefined;

  /** @throws {TypeError | RangeError} when an option cannot be used, with its value in the message */
  constructor(options: EtcdClientOptions = {}) {
    this.#settings = checkOptions(options);
    this.lockPrefix = this.#settings.lockPrefix;
    this.#endpoints = new Endpoints(this.#settings);
  }

  get clusterId(): string | undefined {
    return this.#clusterId;
  }

  async get(key: string, options: GetOptions = {}): Promise<Snapshot> {
    const request = wire.encodeGet(key, options);
    return this.#call('hedged', options, async (sending) =>
      wire.decodeSnapshot(await this.#answer({ ...sending, lane: laneFor('read', sending) }, request), key),
    );
  }

  async set(key: string, value: string | undefined, options: SetOptions = {}): Promise<Change> {
    const request = wire.encodeSet(key, value, options);
    const repeat = isConditional(options) ? 'safe' : 'never';
    return this.#ask(repeat, request, (answer) => wire.decodeChange(answer, key), options);
  }

  async createInOrder(dir: string, value: string | undefined, options: CreateOptions = {}): Promise<Append> {
    const create = wire.encodeCreateInOrder(dir, value, options);
    const { listing: wanted, background, signal } = options;
    return this.#call('never', options, async (sending) => {
      // One thing at a time is asked of a cluster that has not answered yet, or does no more.
      const answers = this.#clusterId !== undefined && !this.#endpoints.pace.isDown;
      const lists = wanted && !background && answers && sending.endpoint.pipelines;
      const listing = lists
        ? new ListingBehind(dir, sending, sending.endpoint.pipelining, this.#destroyed, signal)
        : undefined;
      try {
        const change = wire.decodeAppend(await this.#answer(sending, create, listing?.behind), dir, value);
        return Object.assign(change, { listing: listing?.soon() ?? NO_LISTING });
      } catch (error) {
        listing?.cancel(error);
        throw error;
      }
    });
  }

  async renew(key: string, options: RenewOptions): Promise<Change> {
    checkRenew(key, options);
    const { prevValue, prevIndex, ttl, timeout } = options;
    const conditions = { ttl, prevValue, prevIndex };
    const limit = timeout === undefined ? Deadline.never : Deadline.after(timeout);
    const plain = wire.encodeSet(key, prevValue, conditions);
    const patience = (options.attemptTimeout ?? PATIENCE) / 2;
    let first = true;
    // Bound to an index it can be under way twice: only one can be carried out, the other finds the index changed.
    const attempt = async (sending: Sending): Promise<Change> => {
      const silent = ttl !== null && (await this.#takesRefresh(sending, first ? patience : 0));
      first = false;
      const request = silent ? wire.encodeSet(key, undefined, { ...conditions, refresh: true }) : plain;
      return wire.decodeChange(await this.#answer(sending, request), key);
    };
    return this.#call('hedged', options, attempt, limit);
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<Change> {
    // Bound to an index it can be under way twice: only one can be carried out, the other finds the key gone.
    const repeat = options.prevIndex === undefined ? 'safe' : 'hedged';
    return this.#ask(repeat, wire.encodeDelete(key, options), (answer) => wire.decodeChange(answer, key), options);
  }

  async watch(key: string, options: WatchOptions = {}): Promise<KeyEvent | undefined> {
    checkWatch(key, options);
    return this.#call('poll', options, (sending) =>
      longPoll(key, options, (request, { timeout, begun }) => {
        const heed = (head: wire.WireAnswer): void => {
          this.#heedCluster(head);
          begun(head);
        };
        return this.#send({ ...sending, timeout, begun: heed, lane: laneFor('poll', sending) }, request);
      }),
    );
  }

  /** What the member in use tells of its version. */
  async version(options: CallOptions = {}): Promise<wire.Version> {
    return this.#call('hedged', options, (sending) => this.#version(sending));
  }

  /** Client URLs of all members, as the member in use knows them. */
  async machines(options: CallOptions = {}): Promise<string[]> {
    return this.#ask('hedged', wire.encodeInfo('/machines'), wire.decodeMachines, options);
  }

  /** The members of the cluster, as the member in use knows them. */
  async members(options: CallOptions = {}): Promise<wire.Member[]> {
    return this.#ask('hedged', wire.encodeInfo('/members'), wire.decodeMembers, options);
  }

  /**
   * Ends calls under way (waiting locks give their places up), tells those who hold a lock of a `LockManager` by
   * `held.signal`, waits for them to end and for removals still owed, then closes every connection. Not to be awaited
   * while such a lock is held by whoever awaits it. A `Lock` still held keeps its key until the TTL has passed: release it first.
   * @throws {EtcdKeysLeft} after closing all the same, when keys had to be left; it names them
   * @throws {RangeError} when the timeout is no number of seconds ≥ 0
   */
  async close({ timeout = 5 }: CloseOptions = {}): Promise<void> {
    checkSecondsOrNone('timeout', timeout);
    this.#closed ??= this.#close(timeout);
    return this.#closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(timeout: number): Promise<void> {
    const left = await this.cleanups.settle(timeout);
    this.#destroyed.abort(new EtcdClientClosed('the client was closed meanwhile', { outcomeUnknown: true }));
    await this.#endpoints.destroy();
    if (left.length === 0) return;
    throw new EtcdKeysLeft(`closed after ${timeout} s, but these may stay until their TTL: ${left.join(', ')}`, left);
  }

  #ask<T>(repeat: Repeat, request: wire.WireRequest, decode: (answer: wire.WireAnswer) => T, options: CallOptions) {
    return this.#call(repeat, options, async (sending) => decode(await this.#answer(sending, request)));
  }

  /** One round over the members. Closing admits background work only; what is under way then goes on until the very end. */
  async #call<T>(
    repeat: Repeat,
    options: CallOptions,
    attempt: (sending: Sending) => Promise<T>,
    limit = Deadline.never,
  ): Promise<T> {
    const { readTimeout } = this.#settings;
    const { signal, attemptTimeout = repeat === 'hedged' ? PATIENCE : readTimeout, background = false } = options;
    checkSeconds('attemptTimeout', attemptTimeout);
    if (!background) this.cleanups.closing.throwIfAborted();
    const ending = new Scope(this.#destroyed, signal);
    try {
      ending.throwIfAborted();
      const patience = Math.min(attemptTimeout, readTimeout);
      const timeout = repeat === 'hedged' ? readTimeout : patience;
      const lane = background ? 'background' : 'call';
      const round = { repeat, ending, timeout, patience, limit, ref: !background };
      return await this.#endpoints.call(round, (endpoint) => {
        const left = Math.min(timeout, limit.remaining / 1000);
        return attempt({ endpoint, lane, timeout: left, ending, begun: this.#heedCluster });
      });
    } finally {
      ending.abort('over');
      ending.dispose();
    }
  }

  async #answer(sending: Sending, request: wire.WireRequest, behind?: Behind): Promise<wire.WireAnswer> {
    const answer = await this.#send(sending, request, behind);
    if (answer) return answer;
    throw new EtcdConnectionFailed(`no answer within ${sending.timeout} s`, { outcomeUnknown: true });
  }

  async #send(sending: Sending, request: wire.WireRequest, behind?: Behind): Promise<wire.WireAnswer | undefined> {
    const { endpoint, timeout } = sending;
    const answer = await endpoint.send(request, sending, behind);
    const outcome = answer?.status ?? `no answer within ${timeout} s`;
    debug('%s %s%s%s: %s', request.method, endpoint.url, endpoint.prefixOf(request), request.path, outcome);
    return answer;
  }

  /** @throws {EtcdClusterIdChanged} for an answer of another cluster than the one expected */
  readonly #heedCluster = (head: wire.WireAnswer): void => {
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
   * Whether a renewal should be sent to this member as a `refresh`.
   * @param patience seconds to wait for the member's version; 0: do not ask for it
   */
  async #takesRefresh(sending: Sending, patience: number): Promise<boolean> {
    const { endpoint, ending } = sending;
    const known = this.#refresh.knownOf(endpoint);
    // In an outage, and for a further member of one renewal, a plain write takes half the requests.
    if (known !== undefined || patience === 0 || this.#endpoints.pace.isDown) return known ?? false;
    const ask = (): Promise<boolean> => {
      this.#endpoints.pace.sent();
      // Others may wait for it when this call ends early.
      return this.#version({ ...sending, ending: this.#destroyed }).then(wire.knowsRefresh);
    };
    return this.#refresh.of(endpoint, { ask, patience, ending });
  }
}

/** What nobody waits for keeps no process alive, whatever it is. */
const laneFor = (kind: 'read' | 'poll', { lane }: Sending): Lane => (lane === 'background' ? lane : kind);
