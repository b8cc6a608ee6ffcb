import { withCallersStack } from '../base/callers-stack.ts';
import { ignore, orAborted, Scope, type Source } from '../base/cancellation.ts';
import { EtcdLockExpired, EtcdLockReleased, EtcdValueError } from '../errors.ts';
import { acquire } from '../recipe/acquire.ts';
import { Attempt } from '../recipe/attempt.ts';
import type { LockClient } from '../recipe/client.ts';
import type { Entry } from '../recipe/entries/entry.ts';
import { type EntryValue, parseValue } from '../recipe/entries/entry-value.ts';
import { unregisterOwn } from '../recipe/entries/own-entries.ts';
import { freshUuid } from '../recipe/entries/uuid.ts';
import { giveUp } from '../recipe/give-up.ts';
import type { Lease } from '../recipe/lease.ts';
import { storeOf } from '../recipe/option-checks.ts';
import type { FencingTokens, LockStore, OwnEntry, QueueStore, Ticket } from '../recipe/store.ts';
import {
  type AcquireOptions,
  type CheckedAcquire,
  checkAcquire,
  checkLockOptions,
  checkUuid,
  type LockOptions,
} from './options.ts';

/** An entry of a queue, with the parts of its value. Entries of python-etcd and of `Lock` have no identity and no label. */
export interface Contender extends Entry, EntryValue {}

/**
 * Works like python-etcd's `Lock`, call for call, and on etcd v2 in the same queue. A lock's entry is the key
 * `<lockPrefix>/<name>/<sequence>` with the lock's uuid as value. On etcd v3 the key ends in an id made from the uuid, instead of
 * the sequence. The first entry holds the lock.
 *
 * Calling `acquire` again on the same object renews the TTL. Calls of `acquire` and `setUuid` on one object run one after
 * another. `release` makes a waiting `acquire` reject.
 * @example
 * const lock = new Lock(client, 'file1');
 * await lock.acquire({ lockTtl: 60, keepAlive: true });
 * try {
 *   await db.write(row, lock.fencingToken);
 * } finally {
 *   await lock.release();
 * }
 */
export class Lock {
  /** The name of the lock, as given. */
  readonly name: string;
  /** The directory of the queue, `<lockPrefix>/<name>`. */
  readonly path: string;
  readonly #store: LockStore;
  readonly #queue: QueueStore;
  readonly #margin: number | undefined;
  #ticket: Ticket;
  #lease: Lease | undefined;
  /** The fencing token of the present hold. */
  #fencingToken: bigint | undefined;
  #taken = false;
  /** `release` aborts this scope, so that the calls of `acquire` made so far reject, and creates a new one. */
  #calls = new Scope();
  #callsUnderWay = 0;
  /** Resolves when all calls made so far have ended; undefined if no call is under way. */
  #turn: Promise<void> | undefined;

  /**
   * Creates a lock object. Sends nothing to etcd.
   * @param name may contain "/": the lock `a/b` is inside the directory of the lock `a`. For a name with "?", "#" or an escape
   * such as "%41", python-etcd uses another path and therefore another queue.
   * @throws {TypeError | RangeError} for a missing client, a name that etcd would change, or an unknown or invalid option
   */
  constructor(client: LockClient, name: string, options: LockOptions = {}) {
    this.#store = storeOf('Lock', client);
    this.#queue = this.#store.queue(name);
    checkLockOptions(options);
    this.name = name;
    this.path = this.#queue.path;
    this.#margin = options.margin;
    this.#ticket = this.#queue.ticket(options.uuid ?? freshUuid(), { mayExist: options.uuid !== undefined });
  }

  /** The value of this lock's entry. Changed by {@link Lock.setUuid}. */
  get uuid(): string {
    return this.#ticket.value;
  }

  /** Whether the last `acquire` got the lock and its lease is still valid by the local clock. Makes no request. */
  get isTaken(): boolean {
    return this.#taken && (this.#lease?.valid ?? false);
  }

  /**
   * The key of the own entry; after a release, the key of the last own entry.
   * @throws {EtcdValueError} "No sequence present." before the first entry
   */
  get lockKey(): string {
    return this.#lastEntry.key;
  }

  /**
   * The fencing token: greater than the token of every earlier hold. On etcd v2 it is the number in the key of the own entry; on
   * etcd v3 the revision of the store when the lock was acquired. Send the token with each write, and let the resource refuse every
   * token lower than the highest it has seen. Then a holder that lost the lock without noticing does no harm. Read it only while the lock
   * is held.
   * @throws {EtcdValueError} "No sequence present." before the first entry
   */
  get fencingToken(): bigint {
    return this.#fencingToken ?? this.#lastEntry.rank;
  }

  /**
   * The fencing token of each store of etcd that the last hold used. With `api: 'both'` there are two, and
   * {@link Lock.fencingToken} is the one of v2. Read it only while the lock is held.
   */
  get fencingTokens(): FencingTokens {
    return this.#ticket.fencingTokens ?? {};
  }

  /**
   * Aborts when the present hold is lost; each new hold has a new signal. The reason is an `EtcdLockExpired`, an
   * `EtcdClusterIdChanged`, the error that makes renewals impossible, or the error of a later `acquire` on this object. Aborts at the
   * latest when TTL − margin has passed since the last renewal was sent; without `keepAlive`, since the last `acquire` sent its write. A release does not abort the signal. Its listeners
   * run in the async context (`AsyncLocalStorage`) of the `acquire` that got the lock. Read it after
   * `acquire` has got the lock: before that and after a release, it is a signal that never aborts.
   */
  get signal(): AbortSignal {
    return this.#lease?.loss.signal ?? new AbortController().signal;
  }

  /**
   * Enters the queue and waits until the own entry is the first. If there is an own entry already, renews it instead.
   *
   * Resolves to true when the lock is held. Resolves to false if `blocking` is false and another entry holds the lock. **The own
   * entry then stays in the queue** until `release`, or until its TTL has passed; the next call renews it and checks again.
   * A call that rejects removes the entry, unless the call ended before it made any request.
   *
   * Retries after a lost connection, a missing leader or a cleared event history: until the timeout, or forever without one.
   * Rejects after three tries if `blocking` is false, or if there is no timeout and the cluster has never answered.
   * @throws {EtcdLockTimeout} after `timeout` seconds; says whether the lock was held or etcd could not be reached, and names the
   * holder
   * @throws {EtcdLockExpired} when the own entry is lost while waiting: it expired, was removed, or has another value
   * @throws {EtcdClusterIdChanged} when another cluster answers
   * @throws {EtcdLockReleased} when `release` was called before the call ended
   * @throws {EtcdClientClosed} when the client is closed before the call ended
   * @throws {EtcdInsufficientPermissions | EtcdTlsFailed | EtcdUnusableAnswer} without a retry
   * @throws {EtcdConnectionFailed} when no member answers and no try is left
   * @throws {EtcdValueError} on etcd v3, when another program uses the key
   * @throws {TypeError | RangeError} for an invalid option, before any request
   * @throws the signal's reason when it aborts
   */
  async acquire(options: AcquireOptions = {}): Promise<boolean> {
    const checked = checkAcquire(options, this.#margin);
    checked.signal?.throwIfAborted();
    const released = this.#calls;
    const attempt = new Attempt(this.#store, this.path, checked, released);
    if (this.#turn) attempt.waitsForTurn();
    this.#callsUnderWay += 1;
    try {
      const held = await this.#inTurn(() => this.#acquire(attempt, checked), attempt.signal);
      released.throwIfAborted(); // release() may have been called after the lock was acquired
      return held;
    } catch (error) {
      // A call that ended while it waited for its turn rejects with the internal reason: return the real one instead.
      throw withCallersStack(error === attempt.signal.reason ? attempt.explain(error) : error, checked.signal);
    } finally {
      this.#callsUnderWay -= 1;
      attempt.dispose();
    }
  }

  /**
   * Removes the own entry; a waiting `acquire` rejects with `EtcdLockReleased`. Resolves once the key is gone, even if it was
   * gone before the call. `isTaken` is false from the call on, even if the removal fails.
   * @throws {EtcdConnectionFailed} when etcd could not be reached; the removal is then retried in the background until it
   * succeeds, or until etcd refuses it and the entry has expired
   * @throws {EtcdValueError} "No sequence present." when there never was an own entry, and no key has this lock's uuid
   */
  async release(): Promise<void> {
    const waiting = this.#callsUnderWay > 0;
    if (waiting) {
      this.#calls.abort(new EtcdLockReleased(`${this.path} was released while acquire() was under way`));
      this.#calls = new Scope();
    }
    this.#endHold();
    try {
      await this.#inTurn(async () => {
        this.#endHold();
        if (!this.#ticket.last && !waiting && !(await this.#ticket.find()))
          throw new EtcdValueError('No sequence present.');
        await this.#ticket.leave();
        unregisterOwn(this.#ticket);
      });
    } catch (error) {
      throw withCallersStack(error);
    }
  }

  /**
   * Reads the own entry by quorum and resolves to whether this lock is held now. Resolves to false, without a request, while
   * {@link Lock.isTaken} is false.
   */
  async isAcquired(): Promise<boolean> {
    const lease = this.#lease;
    if (!this.isTaken || !lease) return false;
    const lost = await lease.ticket.verify();
    if (lost) lease.lose(lost);
    return this.isTaken && this.#lease === lease;
  }

  /**
   * Takes over the entry of a process that is gone, by the uuid of its lock. `acquire` then renews the entry, and resolves to
   * true if it is the first. The entry keeps its key: **never take over the entry of a process that may still be alive**, because both
   * would hold the lock, on etcd v2 even with the same fencing token. If this lock has another entry, that one is removed.
   * @throws {EtcdValueError} "Inexistent UUID" when no entry has this uuid; nothing is changed then
   * @throws {TypeError | RangeError} for an invalid uuid
   */
  async setUuid(uuid: string): Promise<void> {
    checkUuid(uuid);
    try {
      await this.#inTurn(async () => {
        const ticket = uuid === this.uuid ? this.#ticket : this.#queue.ticket(uuid, { mayExist: true });
        if (!(await ticket.find())) throw new EtcdValueError('Inexistent UUID');
        this.#endHold();
        if (ticket !== this.#ticket) await giveUp(this.#ticket);
        this.#ticket = ticket;
      });
    } catch (error) {
      throw withCallersStack(error);
    }
  }

  /** Reads the queue by quorum. Resolves to the entries of all clients, also python-etcd's, in the order they are served. */
  async contenders(): Promise<readonly Contender[]> {
    return (await this.#queue.read({ ttls: true }))
      .inOrder()
      .map((entry) => ({ ...entry, ...parseValue(entry.value) }));
  }

  /** Calls `release`, unless there was never an own entry and no `acquire` is under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ticket.last || this.#callsUnderWay > 0) await this.release();
  }

  get #lastEntry(): OwnEntry {
    const { last } = this.#ticket;
    if (!last) throw new EtcdValueError('No sequence present.');
    return last;
  }

  async #acquire(attempt: Attempt, { lockTtl, keepAlive }: CheckedAcquire): Promise<boolean> {
    const present = { lease: this.#lease, ticket: this.#ticket, queue: this.#queue };
    const acquisition = { ...present, ttl: lockTtl, margin: this.#margin, keepAlive };
    try {
      const { lease, fencingToken } = await acquire(acquisition, attempt);
      this.#fencingToken = fencingToken;
      this.#taken = fencingToken !== undefined;
      if (!this.#taken) lease.lose(new EtcdLockExpired(`${lease.entry.key} is not the first entry of its queue`));
      this.#lease = this.#taken ? lease : undefined;
      return this.#taken;
    } catch (error) {
      // If this call ended before it made any request, an earlier hold continues.
      if (!this.#lease?.valid) this.#endHold();
      throw error;
    }
  }

  #endHold(): void {
    this.#taken = false;
    this.#fencingToken = undefined;
    this.#lease?.stop();
    this.#lease = undefined;
  }

  #inTurn<T>(work: () => Promise<T>, signal?: Source): Promise<T> {
    const before = this.#turn;
    const turn = before ? (signal ? orAborted(before, signal) : before).then(work) : work();
    const ended = turn.then(ignore, ignore);
    const all = before ? Promise.all([before, ended]).then(ignore) : ended;
    this.#turn = all;
    void all.then(() => {
      if (this.#turn === all) this.#turn = undefined;
    });
    this.#store.pending.add(this.path, ended);
    return turn;
  }
}
