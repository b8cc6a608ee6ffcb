import { detached } from '../base/async-context.ts';
import { withCallersStack } from '../base/callers-stack.ts';
import { addAbortListener, ignore, removeAbortListener, Scope } from '../base/cancellation.ts';
import { show } from '../base/checks.ts';
import { errorText } from '../base/error-text.ts';
import { atDeadline, Deadline } from '../base/time.ts';
import { EtcdLockExpired, EtcdLockLost, EtcdLockReleased, failuresOf } from '../errors.ts';
import { deadlineUnlessZero } from '../recipe/attempt.ts';
import { type Claim, claimOf, isAlone, type LockMode } from '../recipe/entries/entry-value.ts';
import { holderOf } from '../recipe/entries/holder.ts';
import { alive } from '../recipe/entries/leftovers.ts';
import { giveUp } from '../recipe/give-up.ts';
import type { Lease } from '../recipe/lease.ts';
import { Leaving } from '../recipe/leaving.ts';
import type { FencingTokens, LockStore, OwnEntry } from '../recipe/store.ts';
import { attach, type Ending, endAfter } from './ending.ts';
import type { Held, OpenHeld } from './held.ts';
import type { Turn } from './local-queue.ts';
import type { CheckedRequest } from './options.ts';
import { type Enclosing, type Frame, runInside } from './reentrance.ts';
import type { Admitted, Taken } from './take.ts';
import type { Trace } from './trace.ts';

type Work<T> = (held: Held) => T | PromiseLike<T>;

/**
 * The hold of one request. Lasts until the callback and all reentrant requests inside have ended, or until `release()`. With
 * `holdAtLeast`, its entry may stay in the queue for longer.
 */
export class Hold implements Enclosing {
  readonly store: LockStore;
  /** What the callback gets. Has no `release()` unless {@link Hold.opened} adds it. */
  readonly held: Held;
  /** Refers to this hold as long as reentrant requests may join it. */
  readonly frame: Frame = { hold: this };
  readonly #lease: Lease;
  readonly #turn: Turn;
  readonly #trace: Trace;
  /** Aborts with an `EtcdLockLost`. Callbacks may add any number of listeners to its signal without a warning. */
  readonly #loss = new Scope();
  readonly #nested = new Set<Promise<void>>();
  readonly #identity: string | undefined;
  /** Until when the entry stays in the queue, even if the hold ends earlier. Undefined: it is removed when the hold ends. */
  #atLeast: Deadline | undefined;
  #maxHold = 0;
  #mustEnd = Deadline.never;
  #cancelMaxHold: () => void = ignore;
  readonly #onClosing = (reason: unknown): void => this.#lease.lose(reason);
  #removal: Promise<unknown> | undefined;
  #onRemoved: () => void = ignore;
  #ending: Promise<Ending> | undefined;

  constructor(store: LockStore, { name, turn, trace, request }: Admitted, { lease, fencingToken, uuid }: Taken) {
    const { mode, identity } = request;
    this.store = store;
    this.#lease = lease;
    this.#turn = turn;
    this.#trace = trace;
    this.#identity = identity;
    const watched = { loss: this.#loss, expiresIn: () => this.#expiresIn, assertHeld: this.#assertHeld };
    const { fencingTokens = {} } = lease.ticket;
    this.held = new HeldView({ name, mode, key: lease.entry.key, uuid, fencingToken, fencingTokens }, watched);
    turn.state = () => ({
      reason: 'held',
      holder: holderOf(lease.ticket.path, { ...this.entry, ttl: Math.ceil(this.#expiresIn) }),
    });
    // Must come before the listeners below: if the lease is lost already, they are called at once.
    trace.holds(this.held);
    addAbortListener(lease.loss, (cause) => this.#loss.abort(lossBy(lease, cause)));
    addAbortListener(this.#loss, (error) => trace.loses(error as EtcdLockLost));
    // A closed client sends no renewals. So report the loss at once: `close()` gives the work some time to end.
    addAbortListener(store.pending.closing, this.#onClosing);
    store.pending.add(this.entry.key, new Promise((resolve) => (this.#onRemoved = resolve)));
  }

  get name(): string {
    return this.held.name;
  }

  get entry(): OwnEntry {
    return this.#lease.entry;
  }

  /** Whether the entry could have expired when the lock was lost. False if it was lost before, such as by a removal. */
  get expired(): boolean {
    return this.#lease.expired;
  }

  /** Whether reentrant requests run under this hold. */
  get isJoined(): boolean {
    return this.#nested.size > 0;
  }

  /** Waits for the reentrant requests that run under this hold now. If others join during this wait, {@link isJoined} stays true. */
  async whileJoined(): Promise<void> {
    await Promise.all(this.#nested);
  }

  /** Starts the times `holdAtLeast` and `maxHold`. Call this once all locks of the request are held. */
  begin({ holdAtLeast, maxHold }: Pick<CheckedRequest, 'holdAtLeast' | 'maxHold'>): this {
    this.#atLeast = Deadline.after(holdAtLeast);
    this.#maxHold = maxHold;
    this.#mustEnd = deadlineUnlessZero(maxHold);
    this.#cancelMaxHold = atDeadline(this.#mustEnd, () => this.#checkMaxHold(), { ref: false });
    return this;
  }

  /**
   * Runs the work, then releases the lock. If the work throws, rejects with the same error. The loss of the lock, or a failed
   * removal of the key, is attached to that error as `lockError`.
   * @throws {EtcdLockLost} if the work returned, but the lock was lost
   */
  run<T>(work: Work<T>): Promise<T> {
    return endAfter(
      () => runInside(this, () => work(this.held)),
      () => this.end(),
    );
  }

  /**
   * Runs the work of a reentrant request under this hold. The hold does not end before the work has ended.
   * @throws {RangeError} if this hold is shared or has a limit, and the request has another mode or limit
   * @throws {EtcdLockLost} if the lock is lost before the work starts or returns
   */
  async join<T>(claim: Claim, work: Work<T>): Promise<T> {
    checkCovers(this, claim);
    this.held.assertHeld();
    const run = runInside(this, async () => work(this.held));
    const ended = run.then(ignore, ignore);
    this.#nested.add(ended);
    try {
      const result = await run;
      this.held.assertHeld();
      return result;
    } catch (error) {
      attach(error, this.#lost);
      throw error;
    } finally {
      this.#nested.delete(ended);
    }
  }

  /**
   * Waits for the reentrant requests inside, then releases the lock. Never rejects. Further calls have no effect.
   * @param deadline when the request's timeout has passed, if it did not get all of its locks
   */
  end(deadline?: Deadline): Promise<Ending> {
    // Check for a loss before `#ending` is set: the listeners of a loss may call this method, too.
    if (!this.#ending) this.#checkLoss();
    this.#ending ??= this.#end(deadline);
    return this.#ending;
  }

  /** Adds `release()` to {@link Hold.held} and returns it, for a hold without a callback. */
  opened(): OpenHeld {
    const release = async (): Promise<boolean> => (await this.end()).lost === undefined;
    const dispose = async (): Promise<void> => {
      await release();
    };
    return Object.assign(this.held, { release, [Symbol.asyncDispose]: dispose });
  }

  /** Seconds until the lease's deadline or the end of `maxHold`; 0 once lost or released. */
  get #expiresIn(): number {
    return this.#valid ? Math.min(this.#lease.expiresIn, this.#mustEnd.remaining / 1000) : 0;
  }

  get #valid(): boolean {
    return this.#checkLoss() && !this.#removal;
  }

  /** Returns whether the lease still lasts. Checks the clock: a timer may be late. If the lease is lost, calls the listeners. */
  #checkLoss(): boolean {
    this.#checkMaxHold();
    return this.#lease.valid;
  }

  #checkMaxHold(): void {
    if (!this.#mustEnd.passed) return;
    this.#lease.lose(new EtcdLockExpired(`the maxHold of ${this.#maxHold} s has passed`));
  }

  get #lost(): unknown {
    return this.#valid ? undefined : this.#loss.reason;
  }

  readonly #assertHeld = (): void => {
    if (this.#valid) return;
    if (this.#loss.aborted) throw withCallersStack(this.#loss.reason);
    throw new EtcdLockReleased(`${this.entry.key} was released`);
  };

  async #end(deadline: Deadline | undefined): Promise<Ending> {
    while (this.isJoined) {
      await this.whileJoined();
      this.#checkLoss();
    }
    const lost = this.#loss.reason;
    this.frame.hold = undefined;
    this.#removal = this.#remove(deadline);
    const cleanupError = await this.#removal;
    this.#turn.end();
    this.#lease.context.run(() => this.#trace.releases(cleanupError));
    return { lost, cleanupError };
  }

  /** Removes the key, or leaves it to expire. Resolves to undefined on success, otherwise to the error. */
  async #remove(deadline: Deadline | undefined): Promise<unknown> {
    removeAbortListener(this.store.pending.closing, this.#onClosing);
    this.#cancelMaxHold();
    this.#lease.stop();
    const { ticket } = this.#lease;
    const { value } = ticket;
    const until = this.#atLeast?.passed ? undefined : this.#atLeast;
    const forget = () => alive.delete(value);
    // An entry kept by `holdAtLeast` is not a leftover: requests of this process with the same `identity` must not evict it.
    if (!until || this.#identity === undefined) forget();
    else detached(() => atDeadline(until, forget, { ref: false }));
    const leaving = new Leaving(ticket);
    // An entry that is handed over may stay longer than a caller with a deadline should wait.
    const isHandedOver = !until && !deadline && ticket.isReplaceable && this.#turn.handOver(leaving);
    const trouble = await (isHandedOver ? leaving.left : giveUp(ticket, { until, deadline }));
    this.#onRemoved();
    return trouble;
  }
}

/** The parts of a hold that its {@link HeldView} uses. */
interface Watched {
  readonly loss: Scope;
  readonly expiresIn: () => number;
  readonly assertHeld: () => void;
}

/** The fields of a {@link HeldView} that never change. */
type Facts = Pick<Held, 'name' | 'mode' | 'key' | 'uuid' | 'fencingToken' | 'fencingTokens'>;

class HeldView implements Held {
  readonly name: string;
  readonly mode: LockMode;
  readonly key: string;
  readonly uuid: string;
  readonly fencingToken: bigint;
  readonly fencingTokens: FencingTokens;
  readonly #watched: Watched;

  constructor({ name, mode, key, uuid, fencingToken, fencingTokens }: Facts, watched: Watched) {
    this.name = name;
    this.mode = mode;
    this.uuid = uuid;
    this.key = key;
    this.fencingToken = fencingToken;
    this.fencingTokens = fencingTokens;
    this.#watched = watched;
  }

  get signal(): AbortSignal {
    return this.#watched.loss.signal;
  }

  expiresIn(): number {
    return this.#watched.expiresIn();
  }

  assertHeld(): void {
    this.#watched.assertHeld();
  }

  toJSON(): ReturnType<Held['toJSON']> {
    const { name, mode, key, uuid, fencingToken } = this;
    return { name, mode, key, uuid, fencingToken: String(fencingToken) };
  }
}

/** @throws {RangeError} unless a request with this claim may run under the hold */
function checkCovers({ name, entry }: Hold, { mode, limit }: Claim): void {
  const own = claimOf(entry.value);
  if (isAlone(own) || (own.mode === mode && own.limit === limit)) return;
  if (own.mode === 'shared')
    throw new RangeError(`mode must be 'shared' inside a shared hold of ${show(name)}, got ${show(mode)}`);
  const got = mode === 'shared' ? `mode ${show(mode)}` : show(limit);
  throw new RangeError(`limit must be ${own.limit} inside a hold of ${show(name)} with that limit, got ${got}`);
}

function lossBy({ ticket }: Lease, cause: unknown): EtcdLockLost {
  const why = errorText(cause);
  const fields = { cause, failures: failuresOf(cause) };
  return new EtcdLockLost(`${ticket.path} is no longer held: ${why}`, fields);
}
