import { withCallersStack } from '../base/callers-stack.ts';
import { ignore } from '../base/cancellation.ts';
import { show } from '../base/checks.ts';
import { Attempt } from '../recipe/attempt.ts';
import type { LockClient } from '../recipe/client.ts';
import { storeOf } from '../recipe/option-checks.ts';
import type { LockStore, QueueStore } from '../recipe/store.ts';
import { Election } from './election/election.ts';
import { checkElection, type ElectionOptions } from './election/options.ts';
import type { Held, OpenHeld } from './held.ts';
import type { HeldLocks, HoldOfSeveral, OpenHeldLocks } from './held-locks.ts';
import { Hold } from './hold.ts';
import { localQueue } from './local-queue.ts';
import type { TickWork } from './once/attempt.ts';
import type { OnceJob } from './once/job.ts';
import type { OnceOptions } from './once/options.ts';
import { type JobManager, startOnce } from './once/scheduler.ts';
import type { Tick } from './once/tick.ts';
import {
  type CheckedRequest,
  checkManagerOptions,
  checkRequest,
  type HoldOptions,
  type LockManagerOptions,
  type RequestOptions,
} from './options.ts';
import { type LockInfo, type LockManagerSnapshot, queryLocks } from './query.ts';
import { enclosingFrame } from './reentrance.ts';
import { type ReleaseOptions, releaseLock } from './release.ts';
import { type Part, partsOf, takeSeveral } from './several.ts';
import { type Admitted, type Taken, take } from './take.ts';
import { Trace } from './trace.ts';

type Callback<H, T> = (held: H) => T | PromiseLike<T>;

/** Options of a request that cannot join another hold. */
type NotReentrant = HoldOptions & { readonly reentrant?: never };

/**
 * Acquires locks with an API like Web Locks (`navigator.locks`). Entries are renewed while waiting and while holding. Waits can
 * be cancelled, and each hold has a fencing token. `held.signal` aborts before the lease can expire in etcd, unless the process is
 * suspended or its event loop is blocked. If another client removes the entry, the signal aborts only after that. Uses
 * the same queues as `Lock`, and on etcd v2 as python-etcd's locks.
 *
 * Requests of one process for one lock are served in the order they were made. Exclusive requests enter etcd's queue one at a
 * time, so other processes get the lock between them. This works only among requests of one client, so share the client
 * between managers.
 * @example
 * const locks = new LockManager(client, { ttl: 30 });
 * await locks.request('file1', async (held) => db.write(row, held.fencingToken));
 */
export class LockManager {
  readonly #store: LockStore;
  readonly #defaults: LockManagerOptions;

  /**
   * Creates a manager, which acquires locks on the client's cluster. Sends nothing to etcd.
   * @param client an `EtcdClient`; share it between the managers of a process
   * @param options defaults for all requests
   * @throws {TypeError | RangeError} for a missing client, or an unknown or invalid option
   */
  constructor(client: LockClient, options: LockManagerOptions = {}) {
    this.#store = storeOf('LockManager', client);
    checkManagerOptions(options);
    this.#defaults = { ...options };
  }

  /**
   * Waits for the lock, runs the callback while the lock is held, and releases the lock. Resolves to the callback's result.
   * With `ifAvailable`, the callback gets null if the lock is taken.
   *
   * If the callback throws, the call rejects with the same error, and an error of the lock is attached as `lockError`. If the
   * key cannot be removed within two seconds, the removal is retried in the background, without effect on the result. A lost
   * lock is not acquired again. With `holdAtLeast`, the call resolves as soon as the key has its final TTL. Temporary failures,
   * such as an outage, are retried as by `Lock.acquire`. If the own entry expires or is removed while waiting, the request queues
   * up again at the end, until its `timeout` has passed.
   * @param name may contain "/": the lock `a/b` is inside the directory of the lock `a`. For names with "?", "#" or an escape
   * such as "%41" python-etcd uses another path.
   * @throws {EtcdLockLost} when the callback returns without an error, but the lock was lost before
   * @throws {EtcdLockTimeout} after `timeout` seconds of waiting; the error says whether the lock was held or etcd could not be
   * reached, and names the holder
   * @throws {EtcdLockExpired} when the own entry was lost and the request may not queue up again: it has `ifAvailable`, or an
   * `identity` and the entry was removed before it could expire, perhaps by another process with that identity
   * @throws {EtcdLockLimitDiffers} when the request has a `limit`, and an entry before its own has a different limit
   * @throws {EtcdClusterIdChanged} when another cluster answers while waiting
   * @throws {EtcdClientClosed} when the client is closed before the lock is held
   * @throws {EtcdInsufficientPermissions | EtcdTlsFailed | EtcdUnusableAnswer} without a retry
   * @throws {EtcdConnectionFailed} when no member answers in three tries, and either `ifAvailable` is set, or there is no
   * `timeout` and the cluster has never answered
   * @throws {TypeError | RangeError} for an invalid argument, before anything is sent
   * @throws the signal's reason when it aborts the wait
   */
  request<T>(name: string, callback: (held: Held) => T | PromiseLike<T>): Promise<T>;
  request<T>(
    name: string,
    options: RequestOptions & { readonly ifAvailable?: false | undefined },
    callback: (held: Held) => T | PromiseLike<T>,
  ): Promise<T>;
  request<T>(name: string, options: RequestOptions, callback: (held: Held | null) => T | PromiseLike<T>): Promise<T>;
  /**
   * Waits for all the locks, runs the callback while they are held, and releases them. With `ifAvailable`, the callback gets null
   * if one of the locks is taken; the request then holds none of them.
   *
   * Locks are acquired one after the other, in an order that does not depend on the order of `names`. So two such requests cannot
   * deadlock each other. (Nested requests can.) The options apply to each lock, but `timeout` to the
   * whole wait; `holdAtLeast` and `maxHold` begin when all are held. If a lock is lost while the request waits for another one, the
   * request releases all its locks and begins again, unless it has an `identity`.
   * @param names must differ
   * @example
   * await locks.request(['account/1', 'account/2'], async (held) => transfer(held.get('account/1').fencingToken));
   * @throws {EtcdLockLost} when a lock was lost before the callback returned without an error; also when a lock was lost before the
   * callback started, and the request has an `identity` or `ifAvailable`
   * @throws the errors of a request for one lock
   */
  request<T>(names: readonly string[], callback: (held: HeldLocks) => T | PromiseLike<T>): Promise<T>;
  request<T>(
    names: readonly string[],
    options: NotReentrant & { readonly ifAvailable?: false | undefined },
    callback: (held: HeldLocks) => T | PromiseLike<T>,
  ): Promise<T>;
  request<T>(
    names: readonly string[],
    options: NotReentrant,
    callback: (held: HeldLocks | null) => T | PromiseLike<T>,
  ): Promise<T>;
  async request<T>(
    name: string | readonly string[],
    ...args: [callback: Callback<never, T>] | [options: RequestOptions, callback: Callback<never, T>]
  ): Promise<T> {
    const [options = {}, callback] = args.length === 1 ? [{}, args[0]] : args;
    if (isList(name)) {
      const take = this.#several(name, options);
      const run = checkCallback(callback) as Callback<HeldLocks | null, T>;
      const holds = await take();
      return holds ? holds.run(run) : run(null);
    }
    const queue = this.#store.queue(name);
    const checked = checkRequest(options, this.#defaults);
    const run = checkCallback(callback) as Callback<Held | null, T>;
    checked.signal?.throwIfAborted();
    const trace = new Trace(name, checked);
    return trace.around(checked.signal, async () => {
      const outer = checked.reentrant ? enclosingFrame(this.#store, name)?.hold : undefined;
      if (outer)
        return outer.join(checked, (held) => {
          trace.ends('joined');
          return run(held);
        });
      const hold = await this.#take(name, queue, checked, trace);
      if (hold) return hold.begin(checked).run(run);
      trace.ends('unavailable');
      return run(null);
    });
  }

  /**
   * Waits for the lock and holds it until you release it, with `await using` or `try … finally`. Resolves to null if the lock
   * is taken and `ifAvailable` is set.
   *
   * `release()` does not reject when the lock was lost. To notice a loss, call `held.assertHeld()` right before it, or check
   * that `release()` resolves to true.
   * @example
   * await using held = await locks.acquire('file1');
   * @throws as {@link LockManager.request}
   */
  acquire(name: string, options?: NotReentrant & { readonly ifAvailable?: false | undefined }): Promise<OpenHeld>;
  acquire(name: string, options: NotReentrant): Promise<OpenHeld | null>;
  /**
   * Waits for all the locks and holds them until you release them. See `request` for several locks.
   * @example
   * await using held = await locks.acquire(['account/1', 'account/2']);
   */
  acquire(
    names: readonly string[],
    options?: NotReentrant & { readonly ifAvailable?: false | undefined },
  ): Promise<OpenHeldLocks>;
  acquire(names: readonly string[], options: NotReentrant): Promise<OpenHeldLocks | null>;
  async acquire(name: string | readonly string[], options: HoldOptions = {}): Promise<OpenHeld | OpenHeldLocks | null> {
    if (isList(name)) return (await this.#several(name, options)())?.opened() ?? null;
    const queue = this.#store.queue(name);
    const checked = checkRequest(options, this.#defaults);
    checkNotReentrant(checked, 'in acquire(), which has no callback: use request() instead');
    checked.signal?.throwIfAborted();
    const trace = new Trace(name, checked);
    return trace.around(checked.signal, async () => {
      const hold = await this.#take(name, queue, checked, trace);
      if (hold) return hold.begin(checked).opened();
      trace.ends('unavailable');
      return null;
    });
  }

  /**
   * Returns an election whose leader is the holder of the lock `name`. Sends nothing to etcd: `campaign()` makes this process a
   * candidate, `observe()` and `leader()` show the leader.
   * @example
   * const election = locks.elect('scheduler', { value: 'http://10.0.0.7:8080' });
   * for await (const term of election.campaign()) await schedule(term.signal);
   * @throws {TypeError | RangeError} for an invalid name, or an unknown or invalid option
   */
  elect(name: string, options: ElectionOptions = {}): Election {
    const part = { name, queue: this.#store.queue(name) };
    const candidacy = checkElection(name, options, this.#defaults);
    // The cast is safe: an election never sets `ifAvailable`, so a request that does not reject gets the lock.
    return new Election(this.#store, candidacy, async (request) => (await this.#takeTraced(part, request)) as Hold);
  }

  /**
   * Returns the holders and waiters of one lock, in the order they are served. Without a name, returns those of all locks below the
   * client's lock prefix. Reads by quorum. Includes the entries of all clients, python-etcd's too.
   *
   * Omits requests that wait inside a process and have no entry yet. On etcd v2, a query without a name also omits locks with a "_" at
   * the start of their name or after a "/": etcd hides them.
   * @throws {TypeError | RangeError} for an invalid name, before anything is sent
   */
  async query(name?: string): Promise<LockManagerSnapshot> {
    try {
      return await queryLocks(this.#store, name);
    } catch (error) {
      throw withCallersStack(error);
    }
  }

  /**
   * Removes the selected entries of a lock, such as those of a crashed process with a long TTL. Resolves to the selected entries that
   * no longer exist, whoever removed them; to an empty array if nobody holds the lock, or no entry has the `key` or `uuid`. An entry whose
   * value has changed since it was read is not removed.
   *
   * To release a lock that this process holds, use its `held.release()`. A holder whose entry is removed **continues to
   * work until it notices the loss**:
   * - A `LockManager`: at its next renewal, normally within a third of its TTL; on etcd v3 normally within a second.
   * - On etcd v2, a `Lock` without `keepAlive`: only TTL − margin after its last renewal.
   * - python-etcd, Go's Mutex and `etcdctl lock`: never.
   *
   * So stop the holder first. Otherwise it works at the same time as the next holder, unless a fencing token stops it.
   * A waiting request of a `LockManager` whose entry is removed queues up again at the end, unless it has an
   * `identity`; `Lock.acquire` rejects.
   * @example
   * const removed = await locks.release('nightly-report', { force: true });
   * @throws {EtcdLockHeld} if a selected entry holds the lock when the queue is read and `force` is not set; then nothing is
   * removed. An entry that begins to hold right after that is removed
   * @throws {TypeError | RangeError} for an invalid argument, or if none of `key`, `uuid` and `force` is set, before anything is sent
   */
  async release(name: string, options: ReleaseOptions): Promise<LockInfo[]> {
    try {
      return await releaseLock(this.#store, name, options);
    } catch (error) {
      throw withCallersStack(error);
    }
  }

  /**
   * Starts a job that runs once per tick in the cluster: call this with the same name and `every` on each host. A tick is one time of
   * the schedule, such as 10:00. Of all hosts, at most one runs the callback of each tick, while it holds the lock `name`. The hosts'
   * clocks must differ by less than a day.
   *
   * Runs the ticks that become due from now on. Ends at `stop()`, when the `signal` aborts, when `report` throws, or
   * when the client is closed; until then, the job keeps the process alive. Before the callback runs, the tick is
   * recorded in etcd, in a key of its own that expires. So if the host crashes in the callback,
   * the job is not run again for this tick: `tick.previous` of the next tick says so. A tick that no host could begin is missed, and
   * `tick.missed` of the next one counts it. See docs/once.md.
   *
   * An error of the callback does not stop the job: see the option `report`.
   * @example
   * const job = locks.once('report', { every: '1h' }, async (held, tick) => write(tick.at, held.fencingToken));
   * process.once('SIGTERM', () => job.stop());
   * await job.stopped;
   * @param name of the lock, and of the job
   * @throws {TypeError | RangeError} for an invalid argument, before anything is sent; also with `api: 'both'`
   */
  once(name: string, options: OnceOptions, callback: (held: Held, tick: Tick) => unknown): OnceJob {
    const request: JobManager['request'] = (lock, hold, work) => this.request(lock, hold, work);
    const manager = { store: this.#store, defaults: this.#defaults, request };
    return startOnce(manager, name, options, checkCallback(callback) as TickWork);
  }

  /** Checks a request for several locks. Returns the function that acquires them. */
  #several(names: readonly string[], options: HoldOptions): () => Promise<HoldOfSeveral | undefined> {
    const parts = partsOf(this.#store, names);
    const checked = checkRequest(options, this.#defaults);
    checkNotReentrant(checked, 'in a request for several locks');
    return async () => {
      checked.signal?.throwIfAborted();
      const several = { store: this.#store, parts, request: checked };
      const holds = await takeSeveral(several, (part, request) => this.#takeTraced(part, request));
      return holds?.begin(checked);
    };
  }

  /** Acquires a lock. Traces this as a request of its own, which resolves once the lock is held. */
  async #takeTraced({ name, queue }: Part, request: CheckedRequest): Promise<Hold | undefined> {
    const trace = new Trace(name, request);
    let hold: Hold | undefined;
    await trace.around(request.signal, async () => {
      hold = await this.#take(name, queue, request, trace);
      if (!hold) trace.ends('unavailable');
      return hold?.held ?? null;
    });
    return hold;
  }

  /** Not `async`: an async function keeps half a kilobyte per call, and very many requests may wait here for their turns. */
  #take(name: string, queue: QueueStore, request: CheckedRequest, trace: Trace): Promise<Hold | undefined> {
    const waiting = localQueue(this.#store, queue.path);
    if (!request.blocking && !waiting.admits(request)) return Promise.resolve(undefined);
    trace.waits();
    const frame = enclosingFrame(this.#store, name);
    const limited = frame ? { ...request, isInsideHold: () => frame.hold !== undefined } : request;
    return waiting.enter(limited).then(
      (turn) => this.#hold({ name, queue, request: limited, trace, turn }),
      (error) => {
        throw withCallersStack(error, request.signal);
      },
    );
  }

  async #hold(admitted: Admitted): Promise<Hold | undefined> {
    const { queue, request, turn } = admitted;
    const store = this.#store;
    const attempt = new Attempt(store, queue.path, request);
    turn.state = () => attempt.state;
    let taken: Taken | undefined;
    try {
      const taking = take(admitted, attempt);
      store.pending.add(queue.path, taking.then(ignore, ignore));
      taken = await taking;
      return taken && new Hold(store, admitted, taken);
    } catch (error) {
      throw withCallersStack(error, request.signal);
    } finally {
      attempt.dispose();
      void turn.leaving?.settle();
      if (!taken) turn.end();
    }
  }
}

const isList = (name: string | readonly string[]): name is readonly string[] => Array.isArray(name);

function checkCallback(callback: unknown): unknown {
  if (typeof callback !== 'function') throw new TypeError(`callback must be a function, got ${show(callback)}`);
  return callback;
}

function checkNotReentrant({ reentrant }: CheckedRequest, where: string): void {
  if (reentrant) throw new TypeError(`reentrant must not be true ${where}`);
}
