import { setMaxListeners } from 'node:events';

/** The longest delay `setTimeout` keeps; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Milliseconds on the monotonic clock. */
export const now = (): number => performance.now();

/** For a promise whose outcome is told elsewhere. */
export function ignore(): void {}

/** A point on the monotonic clock, made once at entry and handed down. */
export class Deadline {
  /** A deadline that never passes. */
  static readonly never = new Deadline(Number.POSITIVE_INFINITY);
  readonly at: number;

  /** @param at milliseconds on the monotonic clock */
  constructor(at: number) {
    this.at = at;
  }

  static after(seconds: number): Deadline {
    return new Deadline(now() + seconds * 1000);
  }

  /** Milliseconds left, never below 0. */
  get remaining(): number {
    return Math.max(0, this.at - now());
  }

  get passed(): boolean {
    return now() >= this.at;
  }
}

export interface TimerOptions {
  /** Whether the timer keeps the process alive. Default true. */
  readonly ref?: boolean;
}

/** Calls `fn` once, at or after the deadline, however far away it is. Returns what cancels it. */
export function atDeadline(deadline: Deadline, fn: () => void, { ref = true }: TimerOptions = {}): () => void {
  if (deadline.at === Number.POSITIVE_INFINITY) return ignore;
  let timer: NodeJS.Timeout;
  const arm = () => {
    // Timers count whole milliseconds and may fire a little early: round up, then look again.
    timer = setTimeout(fire, Math.min(Math.ceil(deadline.remaining), LONGEST_TIMER));
    if (!ref) timer.unref();
  };
  const fire = () => (deadline.passed ? fn() : arm());
  arm();
  return () => clearTimeout(timer);
}

/** Resolves after `ms`; rejects with the signal's reason as soon as it aborts. */
export function sleep(ms: number, signal?: AbortSignal, options?: TimerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const wake = () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    };
    const cancel = atDeadline(new Deadline(now() + ms), wake, options);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** A sleep that nobody's process stays alive for, and that the signals end early without an error. */
export async function pause(ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  const scope = new Scope(...signals);
  try {
    await sleep(ms, scope.signal, { ref: false });
  } catch {
    // Woken early.
  } finally {
    scope.dispose();
  }
}

/** Waits that grow from `first` to `most` milliseconds, doubling, each with jitter between half and the whole. */
export class Backoff {
  readonly #first: number;
  readonly #most: number;
  #next: number;

  constructor({ first = 100, most = 500 } = {}) {
    this.#first = first;
    this.#most = most;
    this.#next = first;
  }

  /** Milliseconds to wait before the next try. */
  next(): number {
    const whole = this.#next;
    this.#next = Math.min(whole * 2, this.#most);
    return whole * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#next = this.#first;
  }
}

/** An abort controller whose signal any number of calls may follow at a time without a warning of a leak. */
export function sharedAbortController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/** Is told the reason of the signal that aborts. */
export type OnAbort = (reason: unknown) => void;

/** All who follow one signal by one listener on it. */
interface Followers {
  readonly all: Set<OnAbort>;
  readonly tell: () => void;
}

const followers = new WeakMap<AbortSignal, Followers>();

/**
 * Calls `onAbort` when the signal aborts, unless it is unfollowed before. Any number of followers are one listener: a
 * signal looks through all it has each time one comes or goes.
 */
export function follow(signal: AbortSignal, onAbort: OnAbort): void {
  const known = followers.get(signal);
  if (known) return void known.all.add(onAbort);
  const all = new Set([onAbort]);
  const tell = () => {
    for (const told of all) told(signal.reason);
    followers.delete(signal);
  };
  followers.set(signal, { all, tell });
  signal.addEventListener('abort', tell, { once: true });
}

export function unfollow(signal: AbortSignal, onAbort: OnAbort): void {
  const known = followers.get(signal);
  if (!known?.all.delete(onAbort) || known.all.size > 0) return;
  followers.delete(signal);
  signal.removeEventListener('abort', known.tell);
}

/**
 * One abort signal out of several causes, which leaves no listener or timer behind once disposed of.
 * (`AbortSignal.any` keeps its listeners until the sources are collected.)
 */
export class Scope {
  readonly #controller = new AbortController();
  readonly #onAbort = (reason: unknown): void => this.abort(reason);
  readonly #undo: (() => void)[] = [];

  /** Aborts with the reason of whichever of `signals` aborts first. */
  constructor(...signals: readonly (AbortSignal | undefined)[]) {
    for (const signal of signals) if (signal) this.follow(signal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  /** Also aborts when this signal does, with its reason. */
  follow(signal: AbortSignal): this {
    if (signal.aborted) this.abort(signal.reason);
    follow(signal, this.#onAbort);
    this.#undo.push(() => unfollow(signal, this.#onAbort));
    return this;
  }

  /** Also aborts when the deadline passes, with the reason made at that moment. */
  abortAt(deadline: Deadline, reason: () => unknown, options?: TimerOptions): this {
    this.#undo.push(atDeadline(deadline, () => this.abort(reason()), options));
    return this;
  }

  dispose(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }
}

/** Settles like `promise`, or rejects with the signal's reason as soon as it aborts; the promise then goes on alone. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      promise.catch(ignore);
      return reject(signal.reason);
    }
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
