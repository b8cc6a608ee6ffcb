import { addAbortListener, removeAbortListener, type Source } from '../base/cancellation.ts';
import { atDeadline } from '../base/time.ts';
import { type AttemptLimits, timedOut, type WaitState } from '../recipe/attempt.ts';
import { type Claim, isAlone } from '../recipe/entries/entry-value.ts';
import type { Leaving } from '../recipe/leaving.ts';
import type { LockStore } from '../recipe/store.ts';

/** An element of a {@link Line}. Only the line sets these fields. */
export interface Linked<T> {
  before: T | undefined;
  behind: T | undefined;
}

/**
 * A linked list: first in, first out; any element can be removed. Not a `Set`: finding the first element of a `Set` gets slower
 * with every element removed before it.
 */
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

  /** @param one an element of this line */
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

/** The turn of one request in this process. A request that has its turn may enter the store's queue. */
export interface Turn {
  /** Call this when the request's entry is in the store's queue. Later requests may then enter the queue behind it. */
  queued(): void;
  /** Returns what the request knows about the lock. The requests that wait behind this one report it when they time out. */
  state: () => WaitState;
  /** Ends the turn. Call this when the request has given up its entry, or has failed to create one. */
  end(): void;
  /**
   * Ends the turn before the entry is removed, if the next request may replace the entry. Returns whether the turn has ended: the
   * next turn then has the entry as `leaving`.
   */
  handOver(leaving: Leaving): boolean;
  /** The entry of the turn before this one, if it was handed over. */
  readonly leaving: Leaving | undefined;
}

/** A request waits for another one of this process. No more is known. */
const UNKNOWN: Pick<Turn, 'state'> = { state: () => ({ reason: 'held' }) };

interface Outcomes<Turn> {
  readonly enter: (turn: Turn) => void;
  readonly leave: (reason: unknown) => void;
  /** Returns the error for a waiter that leaves at its deadline. */
  readonly timedOut: () => unknown;
}

/** A request that waits for its turn in this process. Must be small, because there may be very many. */
export class Waiter<Turn> implements Linked<Waiter<Turn>> {
  readonly claim: Claim;
  before: Waiter<Turn> | undefined = undefined;
  behind: Waiter<Turn> | undefined = undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #closing: Source;
  readonly #outcomes: Outcomes<Turn>;
  readonly #cancelTimer: () => void;
  #hasEnded = false;

  /** @param closing aborts when the client is closed */
  constructor(request: Claim & Pick<AttemptLimits, 'signal' | 'deadline'>, closing: Source, outcomes: Outcomes<Turn>) {
    const { signal, deadline } = request;
    this.claim = request;
    this.#signal = signal;
    this.#closing = closing;
    this.#outcomes = outcomes;
    addAbortListener(closing, this.#leave);
    if (signal) addAbortListener(signal, this.#leave);
    this.#cancelTimer = atDeadline(deadline, () => {
      // `timedOut()` may notice that a hold is lost. The listeners of that loss may end this wait.
      const reason = outcomes.timedOut();
      if (!this.#hasEnded) this.#leave(reason);
    });
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
    this.#hasEnded = true;
    removeAbortListener(this.#closing, this.#leave);
    if (this.#signal) removeAbortListener(this.#signal, this.#leave);
    this.#cancelTimer();
  }
}

/**
 * The requests of this process for one lock, first come, first served. While an exclusive request is in the store's queue, all
 * later requests wait here, where they need no key. Other processes can therefore get the lock between two exclusive requests
 * of this process. Shared requests enter the store's queue together. Of the requests with a limit, as many are in the store's queue
 * as may hold the lock.
 */
export class LocalQueue {
  readonly #waiting = new Line<Waiter<Turn>>();
  readonly #inside = new Set<Turn>();
  readonly #path: string;
  readonly #closing: Source;
  readonly #onIdle: () => void;
  #hasWriter = false;
  #leaving: Leaving | undefined;
  /** Number of turns of requests with a limit. */
  #limited = 0;
  /** Number of turns of requests with a limit whose entry is not in the store's queue yet. */
  #limitedArriving = 0;
  /** Number of turns whose entry is not in the store's queue yet. */
  #arriving = 0;

  /**
   * @param path directory of the store's queue
   * @param closing aborts when the client is closed
   * @param onIdle called when no request waits or has a turn
   */
  constructor(path: string, closing: Source, onIdle: () => void) {
    this.#path = path;
    this.#closing = closing;
    this.#onIdle = onIdle;
  }

  /** Whether {@link LocalQueue.enter} would resolve at once for this request. */
  admits(request: Claim & Pick<AttemptLimits, 'blocking'>): boolean {
    return !this.#waiting.first && this.#mayEnter(request, request.blocking);
  }

  /** Returns what the request with the earliest turn knows about the lock. */
  readonly state = (): WaitState => {
    const [earliest = UNKNOWN] = this.#inside;
    return earliest.state();
  };

  /**
   * Waits for a turn.
   * @throws {EtcdLockTimeout} at the deadline
   * @throws {EtcdClientClosed} when the client is closed
   * @throws the signal's reason when the signal aborts
   */
  enter(request: Claim & AttemptLimits): Promise<Turn> {
    return new Promise((resolve, reject) => {
      const ended = [request.signal, this.#closing].find((signal) => signal?.aborted);
      if (ended) {
        reject(ended.reason);
        return this.#admit();
      }
      if (this.admits(request)) return resolve(this.#turnOf(request));
      const waiter = new Waiter<Turn>(request, this.#closing, {
        enter: resolve,
        leave: (reason) => {
          this.#waiting.remove(waiter);
          reject(reason);
          this.#admit();
        },
        timedOut: () => timedOut(this.#path, request, this.state()),
      });
      this.#waiting.add(waiter);
    });
  }

  #admit(): void {
    for (let { first } = this.#waiting; first && this.#mayEnter(first.claim, true); first = this.#waiting.first) {
      this.#waiting.remove(first);
      first.enter(this.#turnOf(first.claim));
    }
    if (this.#inside.size === 0) this.#onIdle();
  }

  /**
   * An exclusive request enters as soon as the shared requests before it are in the store's queue. It does not wait for
   * their release: until then, shared requests of other processes would overtake it. The same applies to requests with
   * a limit. Exception: a request with a limit and `ifAvailable` enters while other requests with a limit are still
   * entering, because they may hold the lock together.
   */
  #mayEnter({ mode, limit }: Claim, blocking: boolean): boolean {
    if (this.#hasWriter) return false;
    if (mode === 'shared') return this.#limitedArriving === 0;
    if (limit === undefined) return this.#arriving === 0;
    const before = blocking ? this.#arriving : this.#arriving - this.#limitedArriving;
    return before === 0 && this.#limited < limit;
  }

  #turnOf(claim: Claim): Turn {
    let arriving = true;
    const isWriter = isAlone(claim);
    if (isWriter) this.#hasWriter = true;
    const isLimited = claim.limit !== undefined;
    if (isLimited) this.#limited += 1;
    if (isLimited) this.#limitedArriving += 1;
    this.#arriving += 1;
    const queued = () => {
      if (!arriving) return;
      arriving = false;
      if (isLimited) this.#limitedArriving -= 1;
      this.#arriving -= 1;
      this.#admit();
    };
    const end = () => {
      if (!this.#inside.delete(turn)) return;
      if (isWriter) this.#hasWriter = false;
      if (isLimited) this.#limited -= 1;
      queued();
      this.#admit();
    };
    const handOver = (entry: Leaving): boolean => {
      // Only between two exclusive requests: several shared or limited requests may have a turn at the same time.
      const next = this.#waiting.first;
      if (!this.#inside.has(turn) || !isWriter || !next || !isAlone(next.claim)) return false;
      this.#leaving = entry;
      end();
      return true;
    };
    const leaving = this.#leaving;
    this.#leaving = undefined;
    const turn: Turn = { queued, end, handOver, leaving, ...UNKNOWN };
    this.#inside.add(turn);
    return turn;
  }
}

const queues = new WeakMap<LockStore, Map<string, LocalQueue>>();

/** Returns the local queue for the lock at `path`. All managers with the same store share it. */
export function localQueue(store: LockStore, path: string): LocalQueue {
  const ofStore = queues.get(store) ?? new Map<string, LocalQueue>();
  queues.set(store, ofStore);
  const queue = ofStore.get(path) ?? new LocalQueue(path, store.pending.closing, () => ofStore.delete(path));
  ofStore.set(path, queue);
  return queue;
}
