import type { Clock } from '../../base/time.ts';
import type { StoredNode } from './tree.ts';

/** Milliseconds between two checks for expired keys, as in etcd. */
const TICK = 500;

/** The nodes that will expire, grouped by the tick at which they expire. One timer serves any number of nodes. */
export class Expiries {
  readonly #clock: Clock;
  readonly #expire: (stored: StoredNode) => void;
  readonly #ticks = new Map<number, Set<StoredNode>>();
  #stopped = false;
  #timer: { readonly tick: number; readonly cancel: () => void } | undefined;

  /** @param expire removes a node with everything below it, and calls {@link Expiries.forget} for each of them */
  constructor(clock: Clock, expire: (stored: StoredNode) => void) {
    this.#clock = clock;
    this.#expire = expire;
  }

  /**
   * Sets when a node expires, in place of its current expiry.
   * @param at milliseconds since the epoch; undefined for never
   */
  set(stored: StoredNode, at: number | undefined): void {
    this.forget(stored);
    if (at === undefined) return;
    stored.expiresAt = at;
    const tick = tickOf(at);
    const nodes = this.#ticks.get(tick);
    if (nodes) nodes.add(stored);
    else this.#ticks.set(tick, new Set([stored]));
    if (this.#timer === undefined || tick < this.#timer.tick) this.#arm(tick);
  }

  /** Removes the expiry of a node. */
  forget(stored: StoredNode): void {
    if (stored.expiresAt === undefined) return;
    const tick = tickOf(stored.expiresAt);
    const nodes = this.#ticks.get(tick);
    if (nodes?.delete(stored) && nodes.size === 0) this.#ticks.delete(tick);
    stored.expiresAt = undefined;
  }

  /** Cancels the timer. Nothing expires afterwards. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #arm(tick: number): void {
    this.#timer?.cancel();
    if (this.#stopped) return;
    const cancel = this.#clock.after(Math.max(0, tick * TICK - this.#clock.now()), () => this.#expireDue());
    this.#timer = { tick, cancel };
  }

  /** Expires the nodes that are due, then sets the timer for the next tick that has nodes. */
  #expireDue(): void {
    this.#timer = undefined;
    const now = this.#clock.now() / TICK;
    const due = [...this.#ticks].filter(([tick]) => tick <= now).flatMap(([, nodes]) => [...nodes]);
    due.sort((a, b) => (a.expiresAt ?? 0) - (b.expiresAt ?? 0));
    // A directory that expired earlier in this loop has removed the nodes below it, and their expiries.
    for (const stored of due) if (stored.expiresAt !== undefined) this.#expire(stored);
    let next = Number.POSITIVE_INFINITY;
    for (const tick of this.#ticks.keys()) next = Math.min(next, tick);
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next);
  }
}

const tickOf = (at: number): number => Math.ceil(at / TICK);
