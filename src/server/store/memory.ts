import { ignore, orAborted, Scope, sharedAbortController } from '../../base/cancellation.ts';
import { checkSeconds, checkSecondsOrNone } from '../../base/checks.ts';
import { PendingWork } from '../../base/pending-work.ts';
import { Deadline, now } from '../../base/time.ts';
import { EtcdClientClosed, EtcdKeysLeft } from '../../errors.ts';
import type { LockClient } from '../../recipe/client.ts';
import type { LockStore } from '../../recipe/store.ts';
import type {
  Append,
  Change,
  CreateOptions,
  DeleteOptions,
  GetOptions,
  KeyEvent,
  KeysApi,
  KeysCall,
  RenewOptions,
  SetOptions,
  Snapshot,
  WatchOptions,
} from '../../v2/keys-api.ts';
import { V2LockStore } from '../../v2/locks/store.ts';
import { DEFAULT_LOCK_PREFIX } from '../../v2/paths.ts';
import * as check from '../../v2/requests.ts';
import type { Exact } from '../../v2/wire.ts';
import { type Budget, processBudget } from '../budget.ts';
import { checkable, inSafeRange, type ServedKeys } from '../served-keys.ts';
import { EventQueue } from './event-queue.ts';
import type { StoreEvent } from './history.ts';
import { Store } from './store.ts';
import type { Watcher } from './watchers.ts';

/** The keys API on a {@link Store}. Adds argument checks, timeouts, cancellation and `close()` to the store's operations. */
export class MemoryStore implements KeysApi, ServedKeys, LockClient {
  readonly store: LockStore = new V2LockStore(this);
  readonly lockPrefix = DEFAULT_LOCK_PREFIX;
  readonly clusterId: string;
  readonly cleanups = new PendingWork(() => new EtcdClientClosed('the store was closed'));
  readonly #store: Store;
  readonly #budget: Budget;
  readonly #closed = sharedAbortController();

  /** @param budget memory for the unsent events of streams */
  constructor(store = new Store(), budget: Budget = processBudget) {
    this.#store = store;
    this.#budget = budget;
    this.clusterId = store.clusterId;
  }

  async get(key: string, options: GetOptions = {}): Promise<Snapshot> {
    check.checkGet(checkable(key), options);
    this.#admit(options);
    return this.#snapshot(key, options);
  }

  async set(key: string, value: string | undefined, options: Exact<SetOptions> = {}): Promise<Change> {
    check.checkSet(checkable(key), value, inSafeRange(options));
    this.#admit(options);
    return this.#change(() => this.#store.set(key, value, options));
  }

  async createInOrder(dir: string, value: string | undefined, options: Exact<CreateOptions> = {}): Promise<Append> {
    check.checkCreateInOrder(checkable(dir), value, inSafeRange(options));
    this.#admit(options);
    const change = this.#change(() => this.#store.createInOrder(dir, value, options));
    const listing = options.listing ? this.#snapshot(dir, { recursive: true }) : undefined;
    return { ...change, listing: Promise.resolve(listing) };
  }

  async renew(key: string, options: RenewOptions): Promise<Change> {
    check.checkRenew(key, options);
    this.#admit(options);
    const { prevValue, prevIndex, ttl } = options;
    const refresh = { ttl, prevValue, prevIndex, refresh: true };
    return this.#change(() => this.#store.set(key, undefined, refresh));
  }

  async delete(key: string, options: Exact<DeleteOptions> = {}): Promise<Change> {
    check.checkDelete(checkable(key), inSafeRange(options));
    this.#admit(options);
    return this.#change(() => this.#store.delete(key, options));
  }

  async watch(key: string, options: WatchOptions = {}): Promise<KeyEvent | undefined> {
    check.checkWatch(checkable(key), options);
    this.#admit(options);
    const { after = this.#store.index, recursive = false, timeout = check.LONGEST_WAIT, background, signal } = options;
    const answer = this.#answer();
    const closing = background ? this.#closed.signal : this.cleanups.closing;
    const timedOut = Symbol('timed out');
    const scope = new Scope(signal, closing).abortAt(Deadline.after(timeout), () => timedOut, { ref: !background });
    let notify: Watcher['notify'] = ignore;
    const woken = new Promise<StoreEvent>((resolve) => {
      notify = resolve;
    });
    const watcher = { key, recursive, since: after + 1, notify };
    try {
      const past = this.#store.watch(watcher);
      const { index } = this.#store;
      await undefined; // the caller gets the promise before `started` is called
      options.started?.(index);
      const event = past ?? (await orAborted(woken, scope));
      return { ...this.#event(event), ...answer };
    } catch (error) {
      if (error === timedOut) return undefined;
      throw error;
    } finally {
      this.#store.unwatch(watcher);
      scope.dispose();
    }
  }

  /**
   * Yields every event on the key until `signal` aborts. As in etcd, yields nothing more after an event from the history, or
   * after a full {@link EventQueue} has dropped an event.
   */
  async *stream(key: string, options: WatchOptions = {}): AsyncGenerator<KeyEvent, void> {
    check.checkWatch(checkable(key), options);
    this.#admit(options);
    const { after = this.#store.index, recursive = false, signal } = options;
    const queue = new EventQueue(this.#budget);
    const notify = (event: StoreEvent): void => {
      if (!queue.push(event)) this.#store.unwatch(watcher);
    };
    const watcher = { key, recursive, stream: true, since: after + 1, notify };
    const scope = new Scope(signal, this.cleanups.closing);
    try {
      const past = this.#store.watch(watcher);
      options.started?.(this.#store.index);
      if (past) yield this.#event(past);
      for (;;) {
        const event = queue.shift();
        if (event) yield this.#event(event);
        else await orAborted(queue.arrival(), scope);
      }
    } finally {
      queue.end();
      this.#store.unwatch(watcher);
      scope.dispose();
    }
  }

  /**
   * Ends calls in progress and waits up to `timeout` seconds for pending removals.
   * @throws {EtcdKeysLeft} if keys remain; the error contains them
   * @throws {RangeError} if `timeout` is not a number of seconds ≥ 0
   */
  async close({ timeout = 5 } = {}): Promise<void> {
    checkSecondsOrNone('timeout', timeout);
    const left = await this.cleanups.settle(timeout);
    this.#closed.abort(new EtcdClientClosed('the store was closed'));
    if (left.length > 0)
      throw new EtcdKeysLeft(`closed after ${timeout} s, but these keys were not removed: ${left.join(', ')}`, left);
  }

  /**
   * Throws if the call is aborted or the store is closed. `attemptTimeout` is checked but has no effect: every operation
   * completes at once.
   */
  #admit({ signal, attemptTimeout, background = false }: KeysCall): void {
    if (attemptTimeout !== undefined) checkSeconds('attemptTimeout', attemptTimeout);
    (background ? this.#closed.signal : this.cleanups.closing).throwIfAborted();
    signal?.throwIfAborted();
  }

  #snapshot(key: string, options: GetOptions): Snapshot {
    return { ...this.#answer(), index: this.#store.index, node: this.#store.get(key, options) };
  }

  #answer() {
    return { clusterId: this.clusterId, sentAt: now() };
  }

  #event(event: StoreEvent): KeyEvent {
    return { ...this.#change(() => event), index: event.node.modifiedIndex };
  }

  #change(make: () => StoreEvent): Change {
    const answer = this.#answer(); // before the change, because a hold lasts for its TTL from `sentAt`
    const { action, node, prevNode } = make();
    return { ...answer, action, node, ...(prevNode ? { prevNode } : {}) };
  }
}
