import { ignore, orAborted, Scope, type Source } from '../cancellation.ts';
import { EtcdLockExpired, EtcdLockReleased, EtcdValueError } from '../errors.ts';
import { acquire, giveUp } from '../recipe/acquire.ts';
import { Attempt } from '../recipe/attempt.ts';
import type { Lease } from '../recipe/lease.ts';
import type { Entry, LockClient, LockStore, OwnEntry, QueueStore, Ticket } from '../recipe/store.ts';
import { freshUuid } from '../recipe/uuid.ts';
import {
  type AcquireOptions,
  type CheckedAcquire,
  checkAcquire,
  checkLockOptions,
  checkUuid,
  type LockOptions,
} from './options.ts';

/**
 * python-etcd's `Lock`, call for call, in the same queue: keys `<lockPrefix>/<name>/<sequence>` with the lock's uuid as
 * value; the first in line owns it.
 *
 * A lock is re-acquired by the same object to renew its TTL. `acquire` and `setUuid` on one object run one after another;
 * `release` ends an `acquire` that still waits.
 */
export class Lock {
  readonly name: string;
  /** The directory of the queue, `<lockPrefix>/<name>`. */
  readonly path: string;
  readonly #store: LockStore;
  readonly #queue: QueueStore;
  readonly #margin: number | undefined;
  #ticket: Ticket;
  #lease: Lease | undefined;
  /** Of the last hold, if the present entry was held. */
  #fencingToken: bigint | undefined;
  #taken = false;
  /** Ends the calls of `acquire` made so far. */
  #calls = new Scope();
  #callsUnderWay = 0;
  /** Settles when all calls made so far have ended; undefined where they have. */
  #turn: Promise<void> | undefined;

  /**
   * Makes no request.
   * @param name may contain "/": the lock `a/b` lives inside the directory of the lock `a`; with "?", "#" or an escape such as
   * "%41" in it python-etcd locks another path
   * @throws {TypeError | RangeError} for a name that etcd would change, or an option out of range
   */
  constructor(client: LockClient, name: string, options: LockOptions = {}) {
    this.#store = client.store;
    this.#queue = this.#store.queue(name);
    checkLockOptions(options);
    this.name = name;
    this.path = this.#queue.path;
    this.#margin = options.margin;
    this.#ticket = this.#queue.ticket(options.uuid ?? freshUuid(), { mayExist: options.uuid !== undefined });
  }

  /** The identity of this contender: the value of its key. Changed by {@link Lock.setUuid}. */
  get uuid(): string {
    return this.#ticket.value;
  }

  /** Whether the last `acquire` got the lock and its lease can still be vouched for. Makes no request. */
  get isTaken(): boolean {
    return this.#taken && (this.#lease?.valid ?? false);
  }

  /**
   * The key of our place in the queue, also after it was given up.
   * @throws {EtcdValueError} "No sequence present." before the first place
   */
  get lockKey(): string {
    return this.#lastEntry.key;
  }

  /**
   * The number our key is named by. It grows with every new place: a resource that refuses a lower one than it has seen is
   * safe from a holder that does not know yet that it lost the lock.
   * @throws {EtcdValueError} "No sequence present." before the first place
   */
  get fencingToken(): bigint {
    return this.#fencingToken ?? this.#lastEntry.rank;
  }

  /**
   * Of the present hold; a new one with each successful `acquire`. Aborts when the hold is lost, with the reason: an
   * `EtcdLockExpired`, an `EtcdClusterIdChanged`, or the error that makes renewals impossible. It does so no later than TTL − margin after the last renewal was sent.
   * Without `keepAlive` nothing renews, so that this is TTL − margin after `acquire`. A release does not abort it.
   */
  get signal(): AbortSignal {
    return this.#lease?.loss.signal ?? new AbortController().signal;
  }

  /**
   * Queues up (once: a place we have is renewed) and waits until it is first in line.
   *
   * Resolves to true when the lock is ours, to false when it is taken and `blocking` is false: **then the place in the
   * queue is kept** until `release`, or until its TTL has passed; the next call renews it and looks again. On every other
   * way out the place is given up.
   *
   * A lost connection, a missing leader and a cleared history are waited out until the timeout. Without a timeout that goes
   * on for ever, but for a cluster that never answered before: then it is told after three tries.
   * @throws {EtcdWatchTimedOut} after `timeout` seconds, naming the holder
   * @throws {EtcdLockExpired} when our key expired while waiting
   * @throws {EtcdLockReleased} when `release` was called meanwhile
   * @throws {EtcdConnectionFailed} when no member answers and that is not waited out
   * @throws {TypeError | RangeError} for an option out of range, before any request
   * @throws the signal's reason when it aborts
   */
  async acquire(options: AcquireOptions = {}): Promise<boolean> {
    const checked = checkAcquire(options, this.#margin);
    checked.signal?.throwIfAborted();
    const released = this.#calls;
    const attempt = new Attempt(this.#store, this.path, { ...checked, released });
    this.#callsUnderWay += 1;
    try {
      const held = await this.#inTurn(() => this.#acquire(attempt, checked), attempt.signal);
      released.throwIfAborted(); // it may have been called since
      return held;
    } catch (error) {
      // Ended while it waited for its turn; later errors come explained.
      throw error === attempt.signal.reason ? attempt.explain(error) : error;
    } finally {
      this.#callsUnderWay -= 1;
      attempt.dispose();
    }
  }

  /**
   * Gives the place up; a waiting `acquire` rejects with `EtcdLockReleased`. Resolves once the key is gone, also when it
   * was gone already. `isTaken` is false from the call on, whatever happens.
   * @throws {EtcdConnectionFailed} when etcd could not be reached; the removal is then retried in the background until it
   * succeeds
   * @throws {EtcdValueError} "No sequence present." when there never was a place, nor a key with our uuid
   */
  async release(): Promise<void> {
    const waiting = this.#callsUnderWay > 0;
    if (waiting) {
      this.#calls.abort(new EtcdLockReleased(`${this.path} was released while acquire() was under way`));
      this.#calls = new Scope();
    }
    this.#endHold();
    await this.#inTurn(async () => {
      this.#endHold();
      if (!this.#ticket.last && !waiting && !(await this.#ticket.find()))
        throw new EtcdValueError('No sequence present.');
      await this.#ticket.leave();
    });
  }

  /** Whether the lock is ours right now: looks at our key, read by quorum. False also past TTL − margin. */
  async isAcquired(): Promise<boolean> {
    const lease = this.#lease;
    if (!this.isTaken || !lease) return false;
    const lost = await lease.ticket.verify();
    if (lost) lease.lose(lost);
    return this.isTaken && this.#lease === lease;
  }

  /**
   * Takes over the place of a contender whose process is gone, by the uuid it queued with. `acquire` then renews it and,
   * when first in line, resolves to true. The place keeps its sequence, hence its fencing token: **never adopt the uuid of a
   * contender that may still be alive**, nothing would tell the two apart. A place of our own is given up.
   * @throws {EtcdValueError} "Inexistent UUID" when no key carries it; nothing is changed then
   * @throws {TypeError | RangeError} when it is no text
   */
  async setUuid(uuid: string): Promise<void> {
    checkUuid(uuid);
    await this.#inTurn(async () => {
      const ticket = uuid === this.uuid ? this.#ticket : this.#queue.ticket(uuid, { mayExist: true });
      if (!(await ticket.find())) throw new EtcdValueError('Inexistent UUID');
      this.#endHold();
      if (ticket !== this.#ticket) await giveUp(this.#ticket);
      this.#ticket = ticket;
      this.#fencingToken = undefined;
    });
  }

  /** The queue as it is now, read by quorum, first in line first; python-etcd's contenders included. */
  async contenders(): Promise<readonly Entry[]> {
    return (await this.#queue.read({ latest: true })).inOrder();
  }

  /** Releases, if there was ever a place to release. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ticket.last || this.#callsUnderWay > 0) await this.release();
  }

  get #lastEntry(): OwnEntry {
    const { last } = this.#ticket;
    if (!last) throw new EtcdValueError('No sequence present.');
    return last;
  }

  async #acquire(attempt: Attempt, { lockTtl, keepAlive }: CheckedAcquire): Promise<boolean> {
    const present = { lease: this.#lease, ticket: this.#ticket, queue: this.#queue, mode: 'exclusive' } as const;
    const acquisition = { ...present, ttl: lockTtl, margin: this.#margin, keepAlive };
    try {
      const { lease, fencingToken } = await acquire(acquisition, attempt);
      this.#fencingToken = fencingToken;
      this.#taken = fencingToken !== undefined;
      if (!this.#taken) lease.lose(new EtcdLockExpired(`${lease.entry.key} is not first in line`));
      this.#lease = this.#taken ? lease : undefined;
      return this.#taken;
    } catch (error) {
      // A hold outlives a call that ended before it made any request.
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
