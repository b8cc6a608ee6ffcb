import { withCallersStack } from '../base/callers-stack.ts';
import { ignore, Scope, type Source } from '../base/cancellation.ts';
import { checkSeconds, checkSecondsOrNone } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { PendingWork } from '../base/pending-work.ts';
import { Deadline } from '../base/time.ts';
import { EtcdClientClosed, EtcdClusterIdChanged, EtcdConnectionFailed, EtcdKeysLeft } from '../errors.ts';
import type { Endpoint, Lane } from './endpoint.ts';
import { Endpoints } from './failover/endpoints.ts';
import { FollowedMembers, type MemberList } from './failover/followed-members.ts';
import type { Repeat } from './failover/round.ts';
import type { LongAnswer } from './message.ts';
import type { HttpSettings } from './options.ts';
import { type MemberHealth, type PingOptions, pingAll, pingTimeout } from './ping.ts';

/**
 * Seconds until a hedged call also asks another member. etcd normally answers within milliseconds.
 * @internal
 */
export const HEDGE_AFTER = 1;

/** A read ends after this many times the option `readTimeout`, even if pieces of its answer still arrive. */
const LONG_ANSWER = 6;

/** Seconds to wait for a member list. */
const LIST_TIMEOUT = 2;

/** Options of {@link EtcdClient.close}. */
export interface CloseOptions {
  /** Seconds to wait for work that may leave a key: requests under way and pending removals. Default 5. */
  readonly timeout?: number;
}

const CLOSE_OPTIONS = { timeout: true } satisfies OptionNames<CloseOptions>;

/**
 * Returns the seconds that closing a client may take.
 * @throws {TypeError | RangeError} for an unknown option, or a timeout that is not a number of seconds ≥ 0
 * @internal
 */
export function closeTimeout(options: CloseOptions): number {
  checkOptionNames(options, CLOSE_OPTIONS);
  const { timeout = 5 } = options;
  checkSecondsOrNone('timeout', timeout);
  return timeout;
}

/**
 * Returns the error for keys that could not be removed before the client was closed.
 * @internal
 */
export const keysLeft = (timeout: number, keys: readonly string[]): EtcdKeysLeft =>
  new EtcdKeysLeft(
    `closed after ${timeout} s; these keys may stay until their TTL has passed: ${keys.join(', ')}`,
    keys,
  );

/**
 * Options of one call to a cluster.
 * @internal
 */
export interface ClusterCall {
  readonly signal?: Source | undefined;
  /** Background work: does not keep the process alive, and may still start while the client is being closed. Default false. */
  readonly background?: boolean | undefined;
  /** Default `call`, or `background` for work in the background. */
  readonly lane?: Lane | undefined;
  /**
   * Seconds to wait for a member's answer before the next member is asked. Maximum: the option `readTimeout`. Default: 1 for a
   * hedged call, else the maximum.
   */
  readonly attemptTimeout?: number | undefined;
  /** Maximum seconds of all attempts together. Default: no limit. */
  readonly timeout?: number | undefined;
}

/**
 * What one attempt at a call gets: the member to ask, and the limits.
 * @internal
 */
export interface ClusterAttempt {
  readonly endpoint: Endpoint;
  readonly lane: Lane;
  /** Seconds. */
  readonly timeout: number;
  /** What to pass as `long` with a request whose answer may be long, such as a listing. */
  readonly ifLong: LongAnswer;
  readonly ending: Scope;
  /**
   * Call this before each request of an attempt that may send several. If it returns a promise, wait for that: in an outage, the
   * rate limit has admitted only the first request. `ending` ends the wait when it aborts.
   */
  readonly onRequest: (ending: Source) => Promise<void> | undefined;
}

/**
 * Calls the members of one cluster with failover, checks the cluster id, and ends all work when the client is closed.
 * @internal
 */
export class Cluster {
  /** What `close` waits for. */
  readonly pending = new PendingWork(() => new EtcdClientClosed('the client was closed'));
  /** Ends all work when the client is closed. */
  readonly destroyed = new Scope();
  readonly endpoints: Endpoints;
  readonly #settings: HttpSettings;
  readonly #followed: FollowedMembers | undefined;
  #id: string | undefined;
  #closed: Promise<void> | undefined;

  /** @param readMembers reads the member list from one member, without credentials */
  constructor(settings: HttpSettings, readMembers?: (attempt: ClusterAttempt) => Promise<MemberList>) {
    this.#settings = settings;
    this.endpoints = new Endpoints(settings);
    if (settings.followMembers && readMembers) this.#followed = this.#follow(settings, readMembers);
  }

  /** Id of the cluster that answered last; undefined before the first answer. */
  get id(): string | undefined {
    return this.#id;
  }

  /**
   * Checks the cluster id of an answer, and remembers it.
   * @throws {EtcdClusterIdChanged} if another one is expected
   * @throws {EtcdConnectionFailed} if a member that was learned now belongs to another cluster: in its own one, nothing was carried out
   */
  checkId(id: string | undefined, { clusterId, url }: Endpoint): void {
    const { expectedClusterId } = this.#settings;
    // Some answers have no id, such as that to /version.
    if (clusterId !== undefined && id !== undefined && id !== clusterId)
      throw new EtcdConnectionFailed(`${url} was a member of cluster ${clusterId}, but cluster ${id} answered`);
    if (id !== undefined && expectedClusterId !== undefined && id !== expectedClusterId)
      throw new EtcdClusterIdChanged(`expected cluster ${expectedClusterId}, but cluster ${id} answered`, {
        outcomeUnknown: true,
      });
    this.#id = id ?? this.#id;
  }

  #follow(settings: HttpSettings, readMembers: (attempt: ClusterAttempt) => Promise<MemberList>): FollowedMembers {
    const options = { background: true, attemptTimeout: LIST_TIMEOUT, timeout: 2 * LIST_TIMEOUT };
    const ifLong = { silence: LIST_TIMEOUT, within: LIST_TIMEOUT, onPiece: ignore };
    const limits = { lane: 'background', timeout: LIST_TIMEOUT, ifLong, onRequest: () => undefined } as const;
    const reader = {
      fromAny: () => this.call('safe', options, readMembers),
      from: (endpoint: Endpoint, ending: Scope) => readMembers({ endpoint, ending, ...limits }),
    };
    return new FollowedMembers(this.endpoints, settings, reader, this.destroyed);
  }

  /** Makes one call. While the client is being closed, only background work may start; calls under way continue. */
  async call<T>(repeat: Repeat, options: ClusterCall, attempt: (attempt: ClusterAttempt) => Promise<T>): Promise<T> {
    const { readTimeout } = this.#settings;
    const { signal, attemptTimeout = repeat === 'hedged' ? HEDGE_AFTER : readTimeout, background = false } = options;
    checkSeconds('attemptTimeout', attemptTimeout);
    const limit = options.timeout === undefined ? Deadline.never : Deadline.after(options.timeout);
    const ending = new Scope(this.destroyed, signal);
    try {
      if (!background) this.pending.closing.throwIfAborted();
      ending.throwIfAborted();
      const hedgeAfter = Math.min(attemptTimeout, readTimeout);
      const timeout = repeat === 'hedged' ? readTimeout : hedgeAfter;
      const { lane = background ? 'background' : 'call' } = options;
      const round = { repeat, ending, timeout, hedgeAfter, limit, ref: !background };
      const answer = await this.endpoints.call(round, (endpoint, onPiece) => {
        let isAdmitted = true;
        const onRequest: ClusterAttempt['onRequest'] = (waitEnding) => {
          const isNext = !isAdmitted;
          isAdmitted = false;
          return isNext ? this.endpoints.rateLimit.admitNext(waitEnding, !background) : undefined;
        };
        const left = limit.remaining / 1000;
        const ifLong = { silence: timeout, within: Math.min(LONG_ANSWER * readTimeout, left), onPiece };
        return attempt({ endpoint, lane, timeout: Math.min(timeout, left), ifLong, ending, onRequest });
      });
      if (!this.pending.closing.aborted) this.#followed?.update(this.#id);
      return answer;
    } catch (error) {
      throw withCallersStack(error, signal);
    } finally {
      ending.abort('over');
      ending.dispose();
    }
  }

  /**
   * Asks each member once by an API, without failover; see {@link pingAll}.
   * @throws {TypeError | RangeError} for an unknown option, or a timeout that is not a number of seconds > 0
   */
  async ping(
    api: MemberHealth['api'],
    options: PingOptions,
    ask: (attempt: ClusterAttempt) => Promise<void>,
  ): Promise<readonly MemberHealth[]> {
    const timeout = pingTimeout(options);
    this.pending.closing.throwIfAborted();
    const ending = new Scope(this.destroyed);
    try {
      const ifLong = { silence: timeout, within: timeout, onPiece: ignore };
      const onRequest = (): undefined => {};
      const askOne = (endpoint: Endpoint, within: Scope): Promise<void> =>
        ask({ endpoint, lane: 'read', timeout, ifLong, ending: within, onRequest });
      return await pingAll(await this.endpoints.list(ending), askOne, { api, timeout, ending });
    } catch (error) {
      throw withCallersStack(error);
    } finally {
      ending.dispose();
    }
  }

  /**
   * Refuses new calls, waits for pending work, then ends the calls that are still under way and closes every connection.
   * @param finish work to do after the pending work, before the connections are closed; gets the deadline of the whole close
   * @throws {EtcdKeysLeft} if keys could not be removed in time; the message names them
   * @throws {TypeError | RangeError} for an unknown option, or a timeout that is not a number of seconds ≥ 0
   */
  async close(options: CloseOptions, finish?: (until: Deadline) => Promise<void>): Promise<void> {
    const timeout = closeTimeout(options);
    this.#closed ??= this.#close(timeout, finish);
    return this.#closed;
  }

  async #close(timeout: number, finish?: (until: Deadline) => Promise<void>): Promise<void> {
    const until = Deadline.after(timeout);
    const left = await this.pending.settle(timeout);
    await finish?.(until);
    this.destroyed.abort(new EtcdClientClosed('the client was closed during the call', { outcomeUnknown: true }));
    await this.endpoints.destroy();
    if (left.length > 0) throw keysLeft(timeout, left);
  }
}
