import { ignore } from '../cancellation.ts';
import { show } from '../checks.ts';
import { Attempt, limitOf, timedOut } from '../recipe/attempt.ts';
import type { LockClient, LockStore, QueueStore } from '../recipe/store.ts';
import type { Deadline } from '../time.ts';
import type { Held, OpenHeld } from './held.ts';
import { Hold } from './hold.ts';
import { localQueue, type Turn } from './local-queue.ts';
import {
  type CheckedRequest,
  checkManagerOptions,
  checkRequest,
  type HoldOptions,
  type LockManagerOptions,
  type RequestOptions,
} from './options.ts';
import { type LockManagerSnapshot, queryLocks } from './query.ts';
import { enclosingHold } from './reentrance.ts';
import { type Taken, take } from './take.ts';
import { Trace } from './trace.ts';

/** A request's would pass for them but for this: there is no inside to be reentrant in. */
type OpenHoldOptions = HoldOptions & { readonly reentrant?: never };

/** A request whose turn has come in this process. */
interface Admitted {
  readonly name: string;
  readonly queue: QueueStore;
  readonly request: CheckedRequest;
  readonly deadline: Deadline;
  readonly trace: Trace;
  readonly turn: Turn;
}

type Callback<H, T> = (held: H) => T | PromiseLike<T>;

/**
 * Locks held safely, in the shape of the Web Locks API (`navigator.locks`): kept alive while they are waited for and held,
 * cancellable, fenced, with a loss told in time. They stand in the same queues as python-etcd's locks and `Lock`'s.
 *
 * Requests of one process for one lock take their turns in the order they came; one of them at a time stands in etcd's
 * queue, so that other processes have their turns in between. Share one client, so that they know of each other.
 */
export class LockManager {
  readonly #store: LockStore;
  readonly #defaults: LockManagerOptions;

  /**
   * Makes no request.
   * @param options what holds for each request that does not say otherwise
   * @throws {TypeError | RangeError} for an option out of range
   */
  constructor(client: LockClient, options: LockManagerOptions = {}) {
    checkManagerOptions(options);
    this.#store = client.store;
    this.#defaults = { ...options };
  }

  /**
   * Waits for the lock, runs the callback while it is held, and gives it back. The result is the callback's.
   *
   * The callback's own error always wins; what went wrong with the lock meanwhile is then attached to it as `lockError`. A
   * key that cannot be removed within a second is removed in the background, and spoils no result. A lost lock is never
   * acquired again by itself. Outages are waited out as by `Lock.acquire`.
   * @param name may contain "/": the lock `a/b` lives inside the directory of the lock `a`; with "?", "#" or an escape such as
   * "%41" in it python-etcd locks another path
   * @throws {EtcdLockLost} when the callback ended without an error, but the lock was lost before it did
   * @throws {EtcdWatchTimedOut} after `timeout` seconds of waiting, naming the holder
   * @throws {EtcdLockExpired} when our entry expired or was removed while waiting
   * @throws {EtcdConnectionFailed} when no member answers and that is not waited out
   * @throws {TypeError | RangeError} for bad input, before any request
   * @throws the signal's reason when it aborts the wait
   */
  request<T>(name: string, callback: Callback<Held, T>): Promise<T>;
  request<T>(
    name: string,
    options: RequestOptions & { readonly ifAvailable?: false | undefined },
    callback: Callback<Held, T>,
  ): Promise<T>;
  request<T>(name: string, options: RequestOptions, callback: Callback<Held | null, T>): Promise<T>;
  async request<T>(
    name: string,
    ...args:
      | [callback: Callback<Held, T>]
      | [options: RequestOptions, callback: Callback<Held, T> | Callback<Held | null, T>]
  ): Promise<T> {
    const [options = {}, callback] = args.length === 1 ? [{}, args[0]] : args;
    const queue = this.#store.queue(name);
    const checked = checkRequest(options, this.#defaults);
    if (typeof callback !== 'function') throw new TypeError(`callback must be a function, got ${show(callback)}`);
    const run = callback as Callback<Held | null, T>;
    checked.signal?.throwIfAborted();
    const trace = new Trace(name, checked.mode, checked.identity);
    return trace.around(async () => {
      const outer = checked.reentrant ? enclosingHold(this.#store, name) : undefined;
      if (outer) return outer.join(checked.mode, run);
      const hold = await this.#take(name, queue, checked, trace);
      return hold ? hold.run(run) : run(null);
    });
  }

  /**
   * Waits for the lock and holds it until it is released: for `await using`, or `try … finally`. Resolves to null when it is
   * taken and not to be waited for.
   *
   * A release hides no error, and so tells of no loss by one: end with `held.assertHeld()`, or look at what `release()`
   * resolves to.
   * @throws as {@link LockManager.request}
   */
  acquire(name: string, options?: OpenHoldOptions & { readonly ifAvailable?: false | undefined }): Promise<OpenHeld>;
  acquire(name: string, options: OpenHoldOptions): Promise<OpenHeld | null>;
  async acquire(name: string, options: HoldOptions = {}): Promise<OpenHeld | null> {
    const queue = this.#store.queue(name);
    const checked = checkRequest(options, this.#defaults);
    if (checked.reentrant) throw new TypeError('reentrant is for request(), whose callback has an inside, got true');
    checked.signal?.throwIfAborted();
    const trace = new Trace(name, checked.mode, checked.identity);
    return trace.around(async () => (await this.#take(name, queue, checked, trace))?.opened() ?? null);
  }

  /**
   * Who holds and who waits, of one lock or of all below the client's lock prefix, first in line first; read by quorum. All
   * clients are in it, python-etcd's too. Not in it are requests that wait inside a process, which have no entry yet, and,
   * where no name is given, locks with a part that begins with "_", which etcd hides.
   * @throws {TypeError | RangeError} for a bad name, before any request
   */
  async query(name?: string): Promise<LockManagerSnapshot> {
    return queryLocks(this.#store, name);
  }

  /** Not `async`: very many may wait for their turns here, and an async function keeps half a kilobyte for each. */
  #take(name: string, queue: QueueStore, request: CheckedRequest, trace: Trace): Promise<Hold | undefined> {
    const { mode, ifAvailable, timeout, signal } = request;
    const waiting = localQueue(this.#store, queue.path);
    if (ifAvailable && !waiting.admits(mode)) return Promise.resolve(undefined);
    const deadline = limitOf(timeout);
    trace.waits();
    return waiting
      .enter(mode, {
        signal,
        closing: this.#store.pending.closing,
        deadline,
        timedOut: () => timedOut(queue.path, timeout, waiting.holder()),
      })
      .then((turn) => this.#hold({ name, queue, request, deadline, trace, turn }));
  }

  async #hold({ name, queue, request, deadline, trace, turn }: Admitted): Promise<Hold | undefined> {
    const store = this.#store;
    const { ifAvailable, timeout, signal } = request;
    const attempt = new Attempt(store, queue.path, { blocking: !ifAvailable, timeout, signal, deadline });
    turn.holder = () => attempt.holder;
    let taken: Taken | undefined;
    try {
      const taking = take(queue, attempt, request, (entry) => {
        trace.queues(entry);
        turn.queued();
      });
      store.pending.add(queue.path, taking.then(ignore, ignore));
      taken = await taking;
      return taken && new Hold({ store, name, ...taken, turn, trace });
    } finally {
      attempt.dispose();
      if (!taken) turn.end();
    }
  }
}
