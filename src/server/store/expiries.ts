import type { Clock } from './clock.ts';
import type { Entry } from './tree.ts';

/** etcd looks for expired keys that often. */
const TICK = 500;

/** What is to expire, by the tick it expires at, so that any number of keys costs one timer. */
export class Expiries {
  readonly #clock: Clock;
  readonly #expire: (entry: Entry) => void;
  readonly #ticks = new Map<number, Set<Entry>>();
  #stopped = false;
  #timer: { readonly tick: number; readonly cancel: () => void } | undefined;

  /** @param expire removes an entry and what is below it, and calls {@link Expiries.forget} for each */
  constructor(clock: Clock, expire: (entry: Entry) => void) {
    this.#clock = clock;
    this.#expire = expire;
  }

  /** @param at milliseconds since the epoch; undefined for never */
  set(entry: Entry, at: number | undefined): void {
    this.forget(entry);
    if (at === undefined) return;
    entry.expiresAt = at;
    const tick = tickOf(at);
    const entries = this.#ticks.get(tick);
    if (entries) entries.add(entry);
    else this.#ticks.set(tick, new Set([entry]));
    if (this.#timer === undefined || tick < this.#timer.tick) this.#arm(tick);
  }

  forget(entry: Entry): void {
    if (entry.expiresAt === undefined) return;
    const tick = tickOf(entry.expiresAt);
    const entries = this.#ticks.get(tick);
    if (entries?.delete(entry) && entries.size === 0) this.#ticks.delete(tick);
    entry.expiresAt = undefined;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #arm(tick: number): void {
    this.#timer?.cancel();
    if (this.#stopped) return;
    const cancel = this.#clock.after(Math.max(0, tick * TICK - this.#clock.now()), () => this.#ring());
    this.#timer = { tick, cancel };
  }

  /** Expires what is due, then sleeps until the next tick that has anything. */
  #ring(): void {
    this.#timer = undefined;
    const now = this.#clock.now() / TICK;
    const due = [...this.#ticks].filter(([tick]) => tick <= now).flatMap(([, entries]) => [...entries]);
    due.sort((a, b) => (a.expiresAt ?? 0) - (b.expiresAt ?? 0));
    // One that went with its directory is forgotten by now.
    for (const entry of due) if (entry.expiresAt !== undefined) this.#expire(entry);
    let next = Number.POSITIVE_INFINITY;
    for (const tick of this.#ticks.keys()) next = Math.min(next, tick);
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next);
  }
}

const tickOf = (at: number): number => Math.ceil(at / TICK);
