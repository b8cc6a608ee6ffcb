import { show } from './base/checks.ts';
import { checkOptionNames, type OptionNames } from './base/option-names.ts';
import { BothClient } from './both/client.ts';
import type { CloseOptions } from './http/cluster.ts';
import type { HttpOptions } from './http/options.ts';
import type { MemberHealth, PingOptions } from './http/ping.ts';
import type { LockClient } from './recipe/client.ts';
import type { LockStore } from './recipe/store.ts';
import type { Surveyor } from './recipe/survey.ts';
import { V2Client } from './v2/client.ts';
import { V2_OPTIONS } from './v2/options.ts';
import { V3Client } from './v3/client.ts';

/** The API of etcd that a client uses for its locks. `both`: while you move from v2 to v3. */
export type EtcdApi = 'v2' | 'v3' | 'both';

/** One of etcd's two APIs. Each has its own store. */
export type StoreApi = Exclude<EtcdApi, 'both'>;

/** Options of an `EtcdClient`: how to reach the cluster. */
export interface EtcdClientOptions extends HttpOptions {
  /**
   * The API that the locks use. Default `v2`. Each API has its own store, and a lock in one store does not block the lock of the
   * same name in the other. Never use `v2` and `v3` for the same lock at the same time: two clients could hold it.
   * - `v2`: etcd 2.2 to 3.5 (3.4 and 3.5 with `--enable-v2`), in one queue with python-etcd's `Lock`
   * - `v3`: the JSON gateway of etcd 3.3 and later, in one queue with Go's `concurrency.Mutex`, `etcdctl lock` and jetcd's `Lock`
   * - `both`: holds each lock on v2 and on v3, and so excludes the clients of either. Use it to move running processes from v2 to
   *   v3 one by one: see docs/moving.md. The cluster must serve both APIs.
   */
  readonly api?: EtcdApi;
  /**
   * Where the lock queues are: the queue of the lock `name` is below `<lockPrefix>/<name>`. Default `/_locks`, as in python-etcd.
   * With `api: 'v3'` it may be empty: the queue is then below `<name>`, as other programs on etcd v3 name theirs.
   */
  readonly lockPrefix?: string;
  /** Path prefix of etcd's v2 API. Default `/v2`. Not for `api: 'v3'`. */
  readonly versionPrefix?: string;
}

const OPTIONS = { ...V2_OPTIONS, api: true } satisfies OptionNames<EtcdClientOptions>;

/**
 * Connects locks to an etcd cluster: by its v2 API, by the JSON gateway of its v3 API, or by both. Share one client between all
 * locks of a process, and close it at the end.
 *
 * With several endpoints, the client uses a random one of them while it answers, then fails over to the next one. Each address of a
 * host name counts as an endpoint. If all fail, the client looks up their host names again. If that does not help, the error lists the
 * failure of each endpoint. The client connects at its first call. Idle connections do not keep the process alive.
 * @example
 * const client = new EtcdClient({ endpoints: ['http://127.0.0.1:2379'] });
 * const locks = new LockManager(client);
 * await client.close();
 */
export class EtcdClient implements LockClient {
  readonly #client: V2Client | V3Client | BothClient;

  /**
   * Creates a client. Sends nothing to etcd.
   * @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its value, but never a password
   */
  constructor(options: EtcdClientOptions = {}) {
    this.#client = open(options);
  }

  /**
   * The lock queues of this cluster, for `Lock` and `LockManager`.
   * @internal
   */
  get store(): LockStore {
    return this.#client.store;
  }

  /**
   * Reads and repairs the queues, for the command line.
   * @throws {TypeError} with api "both"
   * @internal
   */
  get surveyor(): Surveyor {
    if (!(this.#client instanceof BothClient)) return this.#client.surveyor;
    throw new TypeError('with api "both" a lock has two queues: use api "v2" or "v3" to read one of them');
  }

  /** Where the lock queues are: the option `lockPrefix`. */
  get lockPrefix(): string {
    return this.#client.lockPrefix;
  }

  /** Id of the cluster that answered last; undefined before the first answer. */
  get clusterId(): string | undefined {
    return this.#client.clusterId;
  }

  /**
   * Asks each member whether it is healthy, for a health check of your service. A member is healthy if it answers in time, knows a
   * leader, and on v3 reports no alarm. Writes nothing, and never rejects because a member is down.
   *
   * Locks work while a majority of the members is healthy and this client reaches one of them. Do not restart a service because etcd
   * is down: it would lose the locks that it still holds.
   * @param options how long to wait
   * @returns one result for each endpoint, in the order of the URLs
   * @throws {TypeError | RangeError} for an unknown option, or a timeout that is not a number of seconds > 0
   * @throws {EtcdConnectionFailed} if `discoverySrv` finds no endpoints
   * @throws {EtcdClientClosed} if the client is closed
   * @example
   * const members = await client.ping({ timeout: 2 });
   * const down = members.filter(({ ok }) => !ok).map(({ url }) => url);
   */
  async ping(options: PingOptions = {}): Promise<readonly MemberHealth[]> {
    return this.#client.ping(options);
  }

  /**
   * Closes the client:
   * 1. Ends calls under way. Waiters leave their queues. Holders of a `LockManager`'s lock are notified by `held.signal`.
   * 2. Waits until these calls have ended and pending removals of keys are done, up to the timeout.
   * 3. Closes every connection.
   *
   * Do not await this inside a callback that holds a `LockManager`'s lock: it would wait for the callback, up to the timeout. Release a
   * held `Lock` first, or its key stays until the TTL has passed.
   * @param options how long to wait
   * @throws {EtcdKeysLeft} if keys could not be removed in time; the message names them. The client is closed all the same.
   * @throws {TypeError | RangeError} for an unknown option, or a timeout that is not a number of seconds ≥ 0
   */
  async close(options: CloseOptions = {}): Promise<void> {
    return this.#client.close(options);
  }

  /** Closes the client at the end of an `await using` block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function open(options: EtcdClientOptions): V2Client | V3Client | BothClient {
  // A URL may contain a password, so it is not shown.
  if (typeof options === 'string')
    throw new TypeError('options must be an object such as { endpoints: "http://127.0.0.1:2379" }, got a string');
  checkOptionNames(options, OPTIONS);
  const { api = 'v2', ...rest } = options;
  if (api === 'v2') return new V2Client(rest);
  if (api === 'both') return new BothClient(rest);
  if (api !== 'v3') throw new RangeError(`api must be "v2", "v3" or "both", got ${show(api)}`);
  const { versionPrefix, ...v3 } = rest;
  if (versionPrefix !== undefined)
    throw new TypeError(`versionPrefix is for api "v2" and "both" only, got ${show(versionPrefix)} with api "v3"`);
  return new V3Client(v3);
}
