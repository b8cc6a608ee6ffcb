import type { LiveHold } from './excuses.ts';

/** Milliseconds within which a free lock is taken by who waits for it. */
const PROMPT = 1000;

/** Milliseconds by which a lock may be taken too early, as clocks differ. */
const EARLY = 500;

/** Milliseconds by which an entry that is left to expire may stay longer: TTLs are whole seconds, and etcd looks twice a second. */
const COARSE = 2000;

/** Since when a lock is free, and until when it must stay so, in milliseconds of the world. */
interface Free {
  readonly since: number;
  readonly until: number;
}

/** Checks when locks are taken, in a world in which nothing goes wrong. */
export class Waits {
  readonly #now: () => number;
  readonly #free = new Map<string, Free>();
  /** Number of calls for several locks that have perhaps some of them, and when the last one ended. */
  #forSeveral = 0;
  #lastForSeveral = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Call this when a call for several locks begins, and the returned function at its end. */
  beginSeveral(): () => void {
    this.#forSeveral += 1;
    return () => {
      this.#forSeveral -= 1;
      this.#lastForSeveral = this.#now();
    };
  }

  /** Returns what is wrong with the time of a hold that begins. */
  begin({ lock, since }: LiveHold, isFirst: boolean): string[] {
    const free = this.#free.get(lock);
    if (!free) return [];
    const now = this.#now();
    const early = free.until - now;
    const late = now - Math.max(free.since, since ?? now, this.#lastForSeveral);
    return [
      ...(early > EARLY ? [`${Math.round(early)} ms before holdAtLeast ends`] : []),
      ...(late > PROMPT && this.#forSeveral === 0 && isFirst ? [`${Math.round(late)} ms after the lock was free`] : []),
    ];
  }

  /** @param took milliseconds of a hold that ends; undefined: it is lost */
  end({ lock, holdAtLeast = 0 }: LiveHold, took: number | undefined): void {
    const now = this.#now();
    const kept = took === undefined ? 0 : Math.max(holdAtLeast * 1000 - took, 0);
    this.#free.set(lock, { since: now + (kept > 0 ? kept + COARSE : 0), until: now + kept });
  }
}
