import { ignore } from '../base/cancellation.ts';
import { createDebug } from '../base/debug.ts';
import type { PendingWork } from '../base/pending-work.ts';
import { basicAuthorization } from '../http/checks/credentials.ts';
import { type CloseOptions, Cluster, type ClusterAttempt, type ClusterCall, HEDGE_AFTER } from '../http/cluster.ts';
import type { Lane, PipelinedRequest, SendOptions } from '../http/endpoint.ts';
import { noAnswer } from '../http/failover/failures.ts';
import type { MemberList } from '../http/failover/followed-members.ts';
import type { Repeat } from '../http/failover/round.ts';
import type { MemberHealth, PingOptions } from '../http/ping.ts';
import type { LockClient } from '../recipe/client.ts';
import type { Surveyor } from '../recipe/survey.ts';
import type {
  Append,
  Change,
  CreateOptions,
  DeleteOptions,
  GetOptions,
  KeyEvent,
  KeysApi,
  KeysCall,
  Renewed,
  RenewOptions,
  SetOptions,
  Snapshot,
  WatchOptions,
} from './keys-api.ts';
import { NO_LISTING, PipelinedListing } from './listing.ts';
import { V2LockStore } from './locks/store.ts';
import { type ClientSettings, checkOptions, type V2ClientOptions } from './options.ts';
import { RefreshSupport } from './refresh.ts';
import { checkCall, checkRenew, checkWatch, isConditional } from './requests.ts';
import { longPoll } from './watch.ts';
import * as wire from './wire.ts';

const VERSION = wire.encodeInfo('/version');
const LEADER = wire.encodeInfo('/members/leader');

const debug = createDebug('client');

interface Sending extends ClusterAttempt, Pick<SendOptions, 'long' | 'authorization'> {
  readonly onHeaders: (head: wire.WireAnswer) => void;
}

/** Connects locks to an etcd cluster by its v2 HTTP API. */
export class V2Client implements KeysApi, LockClient {
  readonly store: V2LockStore = new V2LockStore(this);
  readonly surveyor: Surveyor = this.store.surveyor;
  readonly lockPrefix: string;
  readonly #settings: ClientSettings;
  readonly #cluster: Cluster;
  readonly #refresh = new RefreshSupport();

  /** @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its value, but never a password */
  constructor(options: V2ClientOptions = {}) {
    this.#settings = checkOptions(options);
    this.lockPrefix = this.#settings.lockPrefix;
    this.#cluster = new Cluster(this.#settings, (attempt) => this.#readMembers(attempt));
  }

  get clusterId(): string | undefined {
    return this.#cluster.id;
  }

  get cleanups(): PendingWork {
    return this.#cluster.pending;
  }

  async get(key: string, options: GetOptions = {}): Promise<Snapshot> {
    const request = wire.encodeGet(key, options);
    return this.#call('hedged', options, async (sending) =>
      wire.decodeSnapshot(
        await this.#answer({ ...sending, long: sending.ifLong, lane: laneFor('read', sending) }, request),
        key,
      ),
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
      // No listing for a cluster that has not answered yet or is down: one request is enough to find out.
      const answers = this.clusterId !== undefined && !this.#cluster.endpoints.rateLimit.isOutage;
      const lists = wanted && !background && answers && sending.endpoint.pipelines;
      const listing = lists
        ? new PipelinedListing(dir, sending, sending.endpoint.pipelining, this.#cluster.destroyed, signal)
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

  async renew(key: string, options: RenewOptions): Promise<Renewed> {
    checkRenew(key, options);
    const { prevValue, prevIndex, ttl } = options;
    const conditions = { ttl, prevValue, prevIndex };
    const plain = wire.encodeSet(key, prevValue, conditions);
    const versionTimeout = (options.attemptTimeout ?? HEDGE_AFTER) / 2;
    let first = true;
    // A renewal may be sent to two members at the same time: both requests expect the same index, so only one of them can succeed.
    const attempt = async (sending: Sending): Promise<Renewed> => {
      const refresh = ttl !== null && (await this.#useRefresh(sending, first ? versionTimeout : 0));
      first = false;
      const request = refresh ? wire.encodeSet(key, undefined, { ...conditions, refresh: true }) : plain;
      const change = wire.decodeChange(await this.#answer(sending, request), key);
      return { ...change, member: sending.endpoint.url };
    };
    return this.#call('hedged', options, attempt);
  }

  async delete(key: string, options: DeleteOptions = {}): Promise<Change> {
    const request = wire.encodeDelete(key, options);
    // A removal with an index may be sent to two members at the same time: only one of the two requests can succeed.
    const repeat = options.prevIndex === undefined ? 'safe' : 'hedged';
    return this.#ask(repeat, request, (answer) => wire.decodeChange(answer, key), options);
  }

  async watch(key: string, options: WatchOptions = {}): Promise<KeyEvent | undefined> {
    checkWatch(key, options);
    return this.#call('poll', options, (sending) =>
      longPoll(key, options, (request, poll) => {
        const onHeaders = (head: wire.WireAnswer): void => {
          this.#checkOf(sending)(head);
          poll.onHeaders(head);
        };
        return this.#send({ ...sending, timeout: poll.timeout, onHeaders, lane: laneFor('poll', sending) }, request);
      }),
    );
  }

  /**
   * Returns the version of the member in use.
   */
  async version(options: KeysCall = {}): Promise<wire.Version> {
    checkCall(options);
    return this.#call('hedged', options, (sending) => this.#version(sending));
  }

  /**
   * Returns the client URLs of all members, as the member in use knows them.
   */
  async machines(options: KeysCall = {}): Promise<string[]> {
    checkCall(options);
    return this.#ask('hedged', wire.encodeInfo('/machines'), wire.decodeMachines, options);
  }

  /**
   * Returns the members of the cluster, as the member in use knows them.
   */
  async members(options: KeysCall = {}): Promise<wire.MemberInfo[]> {
    checkCall(options);
    return this.#ask('hedged', wire.encodeInfo('/members'), wire.decodeMembers, options);
  }

  /** See {@link EtcdClient.ping}. */
  ping(options: PingOptions = {}): Promise<readonly MemberHealth[]> {
    return this.#cluster.ping('v2', options, async (attempt) =>
      wire.checkLeader(await this.#answer({ ...attempt, onHeaders: this.#checkOf(attempt) }, LEADER)),
    );
  }

  close(options: CloseOptions = {}): Promise<void> {
    return this.#cluster.close(options);
  }

  #ask<T>(repeat: Repeat, request: wire.WireRequest, decode: (answer: wire.WireAnswer) => T, options: KeysCall) {
    return this.#call(repeat, options, async (sending) => decode(await this.#answer(sending, request)));
  }

  #call<T>(repeat: Repeat, options: ClusterCall, attempt: (sending: Sending) => Promise<T>): Promise<T> {
    const { username, password, authorization } = this.#settings;
    if (username === undefined || !password || authorization !== undefined)
      return this.#cluster.call(repeat, options, (one) => attempt({ ...one, onHeaders: this.#checkOf(one) }));
    return this.#cluster.call(repeat, options, (one) =>
      password.use(one, (text) => {
        const sent = basicAuthorization(username, text);
        return attempt({ ...one, onHeaders: this.#checkOf(one), authorization: sent });
      }),
    );
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

  /** Returns what checks the cluster that answers. */
  #checkOf({ endpoint }: ClusterAttempt): (head: wire.WireAnswer) => void {
    return (head) => this.#cluster.checkId(wire.clusterIdOf(head), endpoint);
  }

  async #readMembers(attempt: ClusterAttempt): Promise<MemberList> {
    const answer = await this.#answer({ ...attempt, onHeaders: ignore }, wire.encodeInfo('/members'));
    return {
      urls: wire.decodeMembers(answer).flatMap(({ clientURLs }) => clientURLs),
      clusterId: wire.clusterIdOf(answer),
    };
  }

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
    if (known !== undefined || timeout === 0 || this.#cluster.endpoints.rateLimit.isOutage) return known ?? false;
    const ask = (): Promise<boolean | undefined> => {
      this.#cluster.endpoints.rateLimit.count();
      // The request does not end with this call: another renewal may wait for the same answer.
      return this.#version({ ...sending, ending: this.#cluster.destroyed }).then(wire.supportsRefresh);
    };
    return this.#refresh.query(endpoint, { ask, timeout, ending });
  }
}

/** Background work stays in its lane, so that it never keeps the process alive. */
const laneFor = (kind: 'read' | 'poll', { lane }: Sending): Lane => (lane === 'background' ? lane : kind);
