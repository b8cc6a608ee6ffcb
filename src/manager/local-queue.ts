import { addAbortListener, removeAbortListener, type Source } from '../cancellation.ts';
import type { LockHolder } from '../errors.ts';
import { type AttemptLimits, timedOut } from '../recipe/attempt.ts';
import type { LockMode } from '../recipe/entry-value.ts';
import type { LockStore } from '../recipe/store.ts';
import { atDeadline } from '../time.ts';

/** What can be an element of a {@link Line}, which alone sets these fields. */
export interface Linked<T> {
  before: T | undefined;
  behind: T | undefined;
}

/** A linked list: first in, first out; any element can be removed. A `Set` slows down as removed elements pile up at its head. */
export class Line<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;

  get first(): T | undefined {
    return this.#first;
  }

  add(one: T): void {
    one.before = this.#last;
    if (this.#last) this.#last.behind = one;
    else this.#first = one;
    this.#last = one;
  }

  /** @param one is in this line */
  remove(one: T): void {
    const { before, behind } = one;
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
    one.before = undefined;
    one.behind = undefined;
  }
}

/** A request of this process that may enter the store's queue. */
export interface Turn {
  /** To be called when its entry is in the store's queue, and will be served before every later entry. */
  queued(): void;
  /** Returns who holds the lock, for the requests that wait behind this one. */
  holder: () => LockHolder | undefined;
  /** To be called when its entry is gone. */
  end(): void;
}

interface Outcomes<Turn> {
  readonly enter: (turn: Turn) => void;
  readonly leave: (reason: unknown) => void;
  /** Returns the reason to leave at the deadline. */
  readonly timedOut: () => unknown;
}

/** A request that waits for its turn in this process. Kept small: there may be very many. */
export class Waiter<Turn> implements Linked<Waiter<Turn>> {
  readonly mode: LockMode;
  before: Waiter<Turn> | undefined = undefined;
  behind: Waiter<Turn> | undefined = undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #closing: Source;
  readonly #outcomes: Outcomes<Turn>;
  readonly #cancelTimer: () => void;

  /** @param closing aborts when the client is closed */
  constructor(
    mode: LockMode,
    { signal, deadline }: Pick<AttemptLimits, 'signal' | 'deadline'>,
    closing: Source,
    outcomes: Outcomes<Turn>,
  ) {
    this.mode = mode;
    this.#signal = signal;
    this.#closing = closing;
    this.#outcomes = outcomes;
    addAbortListener(closing, this.#leave);
    if (signal) addAbortListener(signal, this.#leave);
    this.#cancelTimer = atDeadline(deadline, () => this.#leave(outcomes.timedOut()));
  }

  enter(turn: Turn): void {
    this.#stop();
    this.#outcomes.enter(turn);
  }

  readonly #leave = (reason: unknown): void => {
    this.#stop();
    this.#outcomes.leave(reason);
  };

  #stop(): void {
    removeAbortListener(this.#closing, this.#leave);
    if (this.#signal) removeAbortListener(this.#signal, this.#leave);
    this.#cancelTimer();
  }
}

/**
 * The requests of this process for one lock, first come, first served. An exclusive request enters the store's queue when no
 * earlier exclusive one of this process is in it; shared requests enter together. So many requests need one key, and other
 * processes get the lock in between.
 */
export class LocalQueue {
  readonly #waiting = new Line<Waiter<Turn>>();
  readonly #inside = new Set<Turn>();
  readonly #path: string;
  readonly #closing: Source;
  readonly #onIdle: () => void;
  #hasWriter = false;
  /** How many turns have begun whose entry is not in the store's queue yet. */
  #arriving = 0;

  /**
   * @param path of the store's queue
   * @param closing aborts when the client is closed
   * @param onIdle called when no request waits or has a turn
   */
  constructor(path: string, closing: Source, onIdle: () => void) {
    this.#path = path;
    this.#closing = closing;
    this.#onIdle = onIdle;
  }

  /** Whether {@link LocalQueue.enter} would resolve at once. */
  admits(mode: LockMode): boolean {
    return !this.#waiting.first && this.#mayEnter(mode);
  }

  /** Returns who holds the lock, as far as the request with the first turn knows. */
  readonly holder = (): LockHolder | undefined => {
    const [first] = this.#inside;
    return first?.holder();
  };

  /**
   * Waits for a turn.
   * @throws the reason of what ended the wait early
   */
  enter(mode: LockMode, limits: AttemptLimits): Promise<Turn> {
    return new Promise((resolve, reject) => {
      const ended = [limits.signal, this.#closing].find((signal) => signal?.aborted);
      if (ended) {
        reject(ended.reason);
        return this.#admit();
      }
      if (this.admits(mode)) return resolve(this.#turnOf(mode));
      const waiter = new Waiter<Turn>(mode, limits, this.#closing, {
        enter: resolve,
        leave: (reason) => {
          this.#waiting.remove(waiter);
          reject(reason);
          this.#admit();
        },
        timedOut: () => timedOut(this.#path, limits.timeout, this.holder()),
      });
      this.#waiting.add(waiter);
    });
  }

  #admit(): void {
    for (let { first } = this.#waiting; first && this.#mayEnter(first.mode); first = this.#waiting.first) {
      this.#waiting.remove(first);
      first.enter(this.#turnOf(first.mode));
    }
    if (this.#inside.size === 0) this.#onIdle();
  }

  /** A writer enters once the readers before it are in the store's queue: then no reader of another process can overtake it. */
  #mayEnter(mode: LockMode): boolean {
    return !this.#hasWriter && (mode === 'shared' || this.#arriving === 0);
  }

  #turnOf(mode: LockMode): Turn {
    let arriving = true;
    if (mode === 'exclusive') this.#hasWriter = true;
    this.#arriving += 1;
    const queued = () => {
      if (!arriving) return;
      arriving = false;
      this.#arriving -= 1;
      this.#admit();
    };
    const end = () => {
      if (!this.#inside.delete(turn)) return;
      if (mode === 'exclusive') this.#hasWriter = false;
      queued();
      this.#admit();
    };
    const turn: Turn = { queued, end, holder: () => undefined };
    this.#inside.add(turn);
    return turn;
  }
}

const queues = new WeakMap<LockStore, Map<string, LocalQueue>>();

/** Returns the queue of this process for the lock at `path`, shared by all who use the same store. */
export function localQueue(store: LockStore, path: string): LocalQueue {
  const ofStore = queues.get(store) ?? new Map<string, LocalQueue>();
  queues.set(store, ofStore);
  const queue = ofStore.get(path) ?? new LocalQueue(path, store.pending.closing, () => ofStore.delete(path));
  ofStore.set(path, queue);
  return queue;
}
