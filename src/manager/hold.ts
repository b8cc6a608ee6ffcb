import { addAbortListener, ignore, removeAbortListener, Scope } from '../cancellation.ts';
import { show } from '../checks.ts';
import { EtcdLockLost, EtcdLockReleased } from '../errors.ts';
import { giveUp } from '../recipe/acquire.ts';
import { type LockMode, parseValue } from '../recipe/entry-value.ts';
import type { Lease } from '../recipe/lease.ts';
import { alive } from '../recipe/leftovers.ts';
import type { LockStore, OwnEntry } from '../recipe/store.ts';
import type { Held, OpenHeld } from './held.ts';
import type { Turn } from './local-queue.ts';
import { type Enclosing, type Frame, runInside } from './reentrance.ts';
import type { Trace } from './trace.ts';

export interface HoldParts {
  readonly store: LockStore;
  readonly name: string;
  readonly lease: Lease;
  readonly fencingToken: bigint;
  readonly turn: Turn;
  readonly trace: Trace;
}

/** How a hold ended. */
interface Ending {
  /** The `EtcdLockLost`, if it was lost. */
  readonly lost: unknown;
  /** Why the key could not be removed yet, if so. */
  readonly cleanupError: unknown;
}

type Work<T> = (held: Held) => T | PromiseLike<T>;

/** A lock that one request holds, until its callback and everything that runs under the same hold has ended. */
export class Hold implements Enclosing {
  readonly store: LockStore;
  /** What the callback gets: it can look, but not release. */
  readonly held: Held;
  /** Refers to this hold until nothing can run under it any more. */
  readonly frame: Frame = { hold: this };
  readonly #lease: Lease;
  readonly #turn: Turn;
  readonly #trace: Trace;
  /** Aborts with an `EtcdLockLost`. A callback may add any number of listeners to its signal. */
  readonly #loss = new Scope();
  readonly #nested = new Set<Promise<void>>();
  readonly #onClosing = (reason: unknown): void => this.#lease.lose(reason);
  #removal: Promise<unknown> | undefined;
  #onRemoved: () => void = ignore;
  #ending: Promise<Ending> | undefined;

  constructor({ store, name, lease, fencingToken, turn, trace }: HoldParts) {
    this.store = store;
    this.#lease = lease;
    this.#turn = turn;
    this.#trace = trace;
    const watched = { loss: this.#loss, expiresIn: () => this.#expiresIn, assertHeld: this.#assertHeld };
    this.held = new HeldView(name, lease.entry, fencingToken, watched);
    turn.holder = () => ({ key: this.#entry.key, value: this.#entry.value, ttl: Math.ceil(this.#expiresIn) });
    addAbortListener(lease.loss, (cause) => this.#loss.abort(lossBy(lease, cause)));
    addAbortListener(this.#loss, (error) => trace.loses(error));
    trace.holds(this.held);
    // A closed client renews nothing: the loss is reported at once, while there is time to end the work and remove the key.
    addAbortListener(store.pending.closing, this.#onClosing);
    store.pending.add(this.#entry.key, new Promise((resolve) => (this.#onRemoved = resolve)));
  }

  get name(): string {
    return this.held.name;
  }

  /** Runs the work, then releases the lock. The work's own error wins over one of the lock, which is attached to it. */
  async run<T>(work: Work<T>): Promise<T> {
    let result: T;
    try {
      result = await runInside(this, () => work(this.held));
    } catch (error) {
      const { lost, cleanupError } = await this.end();
      attach(error, lost ?? cleanupError);
      throw error;
    }
    const { lost } = await this.end();
    if (lost) throw lost;
    return result;
  }

  /**
   * Runs more work under this hold, which lasts until that work has ended.
   * @throws {RangeError} if the work needs an exclusive hold, and this one is shared
   */
  async join<T>(mode: LockMode, work: Work<T>): Promise<T> {
    if (mode === 'exclusive' && this.held.mode === 'shared')
      throw new RangeError(`mode must be 'shared' inside a shared hold of ${show(this.name)}, got ${show(mode)}`);
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

  /** Releases the lock. Never rejects. */
  end(): Promise<Ending> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** Returns the hold as something its owner releases. */
  opened(): OpenHeld {
    const release = async (): Promise<boolean> => (await this.end()).lost === undefined;
    const dispose = async (): Promise<void> => {
      await release();
    };
    return Object.assign(this.held, { release, [Symbol.asyncDispose]: dispose });
  }

  get #entry(): OwnEntry {
    return this.#lease.entry;
  }

  /** Seconds; 0 once lost or released. */
  get #expiresIn(): number {
    return this.#removal ? 0 : this.#lease.expiresIn;
  }

  get #lost(): unknown {
    // Reading the time left notices a deadline that has passed without its timer.
    return this.#expiresIn > 0 ? undefined : this.#loss.reason;
  }

  readonly #assertHeld = (): void => {
    if (!this.#removal && this.#lease.valid) return;
    this.#loss.throwIfAborted();
    throw new EtcdLockReleased(`${this.#entry.key} was released`);
  };

  async #end(): Promise<Ending> {
    while (this.#nested.size > 0) await Promise.all(this.#nested);
    const lost = this.#lost;
    this.frame.hold = undefined;
    this.#removal = this.#remove();
    const cleanupError = await this.#removal;
    this.#turn.end();
    this.#trace.releases(cleanupError);
    return { lost, cleanupError };
  }

  /** Resolves to why the key could not be removed yet, if so. */
  async #remove(): Promise<unknown> {
    removeAbortListener(this.store.pending.closing, this.#onClosing);
    this.#lease.stop();
    const { ticket } = this.#lease;
    alive.delete(ticket.value);
    const trouble = await giveUp(ticket);
    this.#onRemoved();
    return trouble;
  }
}

/** What a {@link HeldView} asks of its hold. */
interface Watched {
  readonly loss: Scope;
  readonly expiresIn: () => number;
  readonly assertHeld: () => void;
}

class HeldView implements Held {
  readonly name: string;
  readonly mode: LockMode;
  readonly key: string;
  readonly uuid: string;
  readonly fencingToken: bigint;
  readonly #watched: Watched;

  constructor(name: string, { key, value }: OwnEntry, fencingToken: bigint, watched: Watched) {
    const { mode, uuid } = parseValue(value);
    this.name = name;
    this.mode = mode;
    this.uuid = uuid;
    this.key = key;
    this.fencingToken = fencingToken;
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
}

function lossBy({ ticket }: Lease, cause: unknown): EtcdLockLost {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new EtcdLockLost(`${ticket.path} is held no more: ${why}`, { cause });
}

/** Attaches an error of the lock to the error that failed first, which must stay what the caller gets. An earlier one stays. */
function attach(error: unknown, lockError: unknown): void {
  if (lockError === undefined || error === lockError || typeof error !== 'object' || error === null) return;
  if ('lockError' in error) return;
  Reflect.defineProperty(error, 'lockError', {
    value: lockError,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}
