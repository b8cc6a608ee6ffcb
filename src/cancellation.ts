import { setMaxListeners } from 'node:events';
import { atDeadline, Deadline, now, type TimerOptions } from './time.ts';

/** For a promise whose outcome is told elsewhere. */
export function ignore(): void {}

/** An abort controller whose signal any number of calls may follow at a time without a warning of a leak. */
export function sharedAbortController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/** Is told the reason of what aborts. */
export type OnAbort = (reason: unknown) => void;

/** All who follow one signal by one listener on it. */
interface Followers {
  readonly all: Set<OnAbort>;
  readonly tell: () => void;
}

const followers = new WeakMap<AbortSignal, Followers>();

/** What can end work early. */
export type Source = AbortSignal | Scope;

/**
 * Calls `onAbort` when the source aborts, unless it is unfollowed before. Any number of followers are one listener on a
 * signal, which looks through all it has each time one comes or goes.
 */
export function follow(source: Source, onAbort: OnAbort): void {
  if (source instanceof Scope) return void source.add(onAbort);
  const known = followers.get(source);
  if (known) return void known.all.add(onAbort);
  const all = new Set([onAbort]);
  const tell = () => {
    for (const told of all) told(source.reason);
    followers.delete(source);
  };
  followers.set(source, { all, tell });
  source.addEventListener('abort', tell, { once: true });
}

export function unfollow(source: Source, onAbort: OnAbort): void {
  if (source instanceof Scope) return void source.remove(onAbort);
  const known = followers.get(source);
  if (!known?.all.delete(onAbort) || known.all.size > 0) return;
  followers.delete(source);
  source.removeEventListener('abort', known.tell);
}

/**
 * One end out of several causes, which leaves no listener or timer behind once disposed of.
 * (`AbortSignal.any` keeps its listeners until the sources are collected; and a signal costs much more than this.)
 */
export class Scope {
  /** One follower alone needs no set; most scopes never have another. */
  #follower: OnAbort | undefined;
  #followers: Set<OnAbort> | undefined;
  readonly #onAbort = (reason: unknown): void => this.abort(reason);
  #sources: Source[] | undefined;
  #cancels: (() => void)[] | undefined;
  #aborted = false;
  #reason: unknown;
  #controller: AbortController | undefined;

  /** Aborts with the reason of whichever of `sources` aborts first. */
  constructor(...sources: readonly (Source | undefined)[]) {
    for (const source of sources) if (source) this.follow(source);
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** For those who need a real one; made when first asked for. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = sharedAbortController();
      if (this.#aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** @throws the reason, once aborted */
  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }

  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.#follower?.(reason);
    for (const told of this.#followers ?? []) told(reason);
    this.#follower = undefined;
    this.#followers = undefined;
  }

  /** Also aborts when this source does, with its reason. */
  follow(source: Source): this {
    if (source.aborted) this.abort(source.reason);
    follow(source, this.#onAbort);
    this.#sources ??= [];
    this.#sources.push(source);
    return this;
  }

  /** Also aborts when the deadline passes, with the reason made at that moment. */
  abortAt(deadline: Deadline, reason: () => unknown, options?: TimerOptions): this {
    this.#cancels ??= [];
    this.#cancels.push(atDeadline(deadline, () => this.abort(reason()), options));
    return this;
  }

  /** How many are told when it aborts. */
  get followers(): number {
    return (this.#follower ? 1 : 0) + (this.#followers?.size ?? 0);
  }

  /** Is told when it aborts; see {@link follow}. */
  add(onAbort: OnAbort): void {
    if (this.#follower === undefined && !this.#followers) this.#follower = onAbort;
    else if (this.#follower !== onAbort) {
      this.#followers ??= new Set();
      this.#followers.add(onAbort);
    }
  }

  remove(onAbort: OnAbort): void {
    if (this.#follower === onAbort) this.#follower = undefined;
    else this.#followers?.delete(onAbort);
  }

  dispose(): void {
    if (this.#sources) for (const source of this.#sources) unfollow(source, this.#onAbort);
    if (this.#cancels) for (const cancel of this.#cancels) cancel();
    this.#sources = undefined;
    this.#cancels = undefined;
  }
}

/** Settles like `promise`, or rejects with the source's reason as soon as it aborts; the promise then goes on alone. */
export function orAborted<T>(promise: Promise<T>, source: Source): Promise<T> {
  return new Promise((resolve, reject) => {
    if (source.aborted) {
      promise.catch(ignore);
      return reject(source.reason);
    }
    follow(source, reject);
    promise.then(
      (value) => {
        unfollow(source, reject);
        resolve(value);
      },
      (error) => {
        unfollow(source, reject);
        reject(error);
      },
    );
  });
}

/** Resolves after `ms`; rejects with the reason of what ends it early. */
export function sleep(ms: number, ending?: Source, options?: TimerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    if (ending?.aborted) return reject(ending.reason);
    const onAbort = (reason: unknown) => {
      cancel();
      reject(reason);
    };
    const wake = () => {
      if (ending) unfollow(ending, onAbort);
      resolve();
    };
    const cancel = atDeadline(new Deadline(now() + ms), wake, options);
    if (ending) follow(ending, onAbort);
  });
}

/** A sleep that nobody's process stays alive for, and that the sources end early without an error. */
export async function pause(ms: number, ...sources: readonly Source[]): Promise<void> {
  const scope = new Scope(...sources);
  try {
    await sleep(ms, scope, { ref: false });
  } catch {
    // Woken early.
  } finally {
    scope.dispose();
  }
}
