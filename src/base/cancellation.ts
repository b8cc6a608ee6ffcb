import { setMaxListeners } from 'node:events';
import { atDeadline, Deadline, now, type TimerOptions } from './time.ts';

/** No-op handler for a promise whose outcome is reported elsewhere. */
export function ignore(): void {}

/** Anything that can cancel work: a caller's signal, or a scope of this package. */
export type Source = AbortSignal | Scope;

/** Called with the abort reason. */
export type AbortListener = (reason: unknown) => void;

/** All listeners of this package on one signal; the signal itself has one listener, `onAbort`. */
interface SignalListeners {
  readonly all: Set<AbortListener>;
  readonly onAbort: () => void;
}

const listenersOf = new WeakMap<AbortSignal, SignalListeners>();

/**
 * Calls `listener` once when `source` aborts, or at once if `source` is already aborted.
 *
 * Adds at most one event listener to a signal, however many listeners are added here: an `AbortSignal` searches its whole
 * list whenever one is added or removed.
 */
export function addAbortListener(source: Source, listener: AbortListener): void {
  if (source.aborted) return void listener(source.reason);
  if (source instanceof Scope) return void source.addListener(listener);
  const known = listenersOf.get(source);
  if (known) return void known.all.add(listener);
  const all = new Set([listener]);
  const onAbort = () => {
    for (const each of all) each(source.reason);
    listenersOf.delete(source);
  };
  listenersOf.set(source, { all, onAbort });
  source.addEventListener('abort', onAbort, { once: true });
}

/** Removes a listener added by {@link addAbortListener}. Does nothing if there is none. */
export function removeAbortListener(source: Source, listener: AbortListener): void {
  if (source instanceof Scope) return void source.removeListener(listener);
  const known = listenersOf.get(source);
  if (!known?.all.delete(listener) || known.all.size > 0) return;
  listenersOf.delete(source);
  source.removeEventListener('abort', known.onAbort);
}

/** Returns an abort controller whose signal accepts any number of listeners without Node's memory-leak warning. */
export function sharedAbortController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/**
 * Combines several causes of an abort into one. `dispose()` removes every listener and timer it added.
 *
 * Used instead of `AbortSignal.any`, which keeps its listeners until the sources are garbage-collected. Used instead of an
 * `AbortController`, which takes a third of the time of an uncontended acquire and release.
 */
export class Scope {
  /** The first listener. Most scopes have only this one, so a set is created only for further ones. */
  #listener: AbortListener | undefined;
  #listeners: Set<AbortListener> | undefined;
  readonly #onSourceAbort = (reason: unknown): void => this.abort(reason);
  #sources: Source[] | undefined;
  #cancelTimers: (() => void)[] | undefined;
  #aborted = false;
  #reason: unknown;
  #controller: AbortController | undefined;

  /** Creates a scope that aborts when the first of `sources` does, with the reason of that source. */
  constructor(...sources: readonly (Source | undefined)[]) {
    for (const source of sources) if (source) this.abortWith(source);
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** An `AbortSignal` that aborts with this scope, for the same reason. Created when first read. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = sharedAbortController();
      if (this.#aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** Number of listeners. Tests use it to find leaks. */
  get listenerCount(): number {
    return (this.#listener ? 1 : 0) + (this.#listeners?.size ?? 0);
  }

  /** @throws the reason, once aborted */
  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }

  /** Aborts this scope and calls all listeners with the reason. Does nothing if already aborted. */
  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.#listener?.(reason);
    for (const listener of this.#listeners ?? []) listener(reason);
    this.#listener = undefined;
    this.#listeners = undefined;
  }

  /** Makes this scope abort when `source` does, with the reason of `source`. */
  abortWith(source: Source): this {
    addAbortListener(source, this.#onSourceAbort);
    this.#sources ??= [];
    this.#sources.push(source);
    return this;
  }

  /** Makes this scope abort at the deadline. `reason` is called at that time and returns the abort reason. */
  abortAt(deadline: Deadline, reason: () => unknown, options?: TimerOptions): this {
    this.#cancelTimers ??= [];
    this.#cancelTimers.push(atDeadline(deadline, () => this.abort(reason()), options));
    return this;
  }

  /** Called by {@link addAbortListener} only, which checks first whether this scope is already aborted. */
  addListener(listener: AbortListener): void {
    if (this.#listener === undefined && !this.#listeners) this.#listener = listener;
    else if (this.#listener !== listener) {
      this.#listeners ??= new Set();
      this.#listeners.add(listener);
    }
  }

  /** Called by {@link removeAbortListener} only. */
  removeListener(listener: AbortListener): void {
    if (this.#listener === listener) this.#listener = undefined;
    else this.#listeners?.delete(listener);
  }

  dispose(): void {
    if (this.#sources) for (const source of this.#sources) removeAbortListener(source, this.#onSourceAbort);
    if (this.#cancelTimers) for (const cancel of this.#cancelTimers) cancel();
    this.#sources = undefined;
    this.#cancelTimers = undefined;
  }
}

/** Settles like `promise`, but rejects with the source's reason as soon as `source` aborts. */
export function orAborted<T>(promise: Promise<T>, source: Source): Promise<T> {
  return new Promise((resolve, reject) => {
    addAbortListener(source, reject);
    promise.then(
      (value) => {
        removeAbortListener(source, reject);
        resolve(value);
      },
      (error) => {
        removeAbortListener(source, reject);
        reject(error);
      },
    );
  });
}

/** Resolves after `ms` milliseconds. Rejects with the source's reason if `source` aborts first. */
export function sleep(ms: number, source?: Source, options?: TimerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    if (source?.aborted) return reject(source.reason);
    const onAbort = (reason: unknown) => {
      cancel();
      reject(reason);
    };
    const wake = () => {
      if (source) removeAbortListener(source, onAbort);
      resolve();
    };
    const cancel = atDeadline(new Deadline(now() + ms), wake, options);
    if (source) addAbortListener(source, onAbort);
  });
}

/** Resolves after `ms` milliseconds, or as soon as a source aborts. Never rejects. Does not keep the process alive. */
export async function pause(ms: number, ...sources: readonly Source[]): Promise<void> {
  const scope = new Scope(...sources);
  try {
    await sleep(ms, scope, { ref: false });
  } catch {
    // A source aborted.
  } finally {
    scope.dispose();
  }
}
