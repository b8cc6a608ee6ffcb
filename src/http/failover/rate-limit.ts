import { addAbortListener, removeAbortListener, type Source } from '../../cancellation.ts';
import { EtcdConnectionFailed } from '../../errors.ts';
import { atDeadline, Deadline, now } from '../../time.ts';

/** Requests of one client in any second while no member answers. */
const MOST_PER_SECOND = 4;
/** Milliseconds between two of them, at least; up to twice that, so that clients do not fall into step. */
const BETWEEN = 75;
/** Seconds a request waits for its turn: with many before it, what they find out counts for all. */
const LONGEST_QUEUE = 1.5;

/**
 * Spaces out a client's requests while no member of its cluster answers, so that an outage meets no storm of them however
 * many calls wait for its end. The first answer lets all of them go on at once.
 */
export class Pace {
  /** When the last requests were sent. */
  readonly #recent: number[] = [];
  /** What lets each of those waiting go, in the order they came. */
  readonly #queue = new Set<() => void>();
  /** How many of them keep the process alive. */
  #refs = 0;
  #down = false;
  #timer: NodeJS.Timeout | undefined;

  get isDown(): boolean {
    return this.#down;
  }

  /**
   * Resolves when a request may be sent: at once, unless the cluster is down.
   * @throws the reason of what ends it early
   * @throws {EtcdConnectionFailed} when its turn does not come soon
   */
  turn(ending: Source, ref: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      if (ending.aborted) return reject(ending.reason);
      const go = (): void => {
        this.sent();
        resolve();
      };
      if (!this.#down) return go();
      const leave = (): void => {
        removeAbortListener(ending, giveUp);
        cancel();
        this.#queue.delete(take);
        if (ref) this.#refs -= 1;
      };
      const take = (): void => {
        leave();
        go();
      };
      const giveUp = (reason: unknown): void => {
        leave();
        reject(reason);
        this.#arm();
      };
      const tooLate = (): void => giveUp(new EtcdConnectionFailed('no member of the cluster answers'));
      const cancel = atDeadline(Deadline.after(LONGEST_QUEUE), tooLate, { ref });
      addAbortListener(ending, giveUp);
      this.#queue.add(take);
      if (ref) this.#refs += 1;
      this.#arm();
    });
  }

  /** Counts a request that is sent without a turn of its own. */
  sent(): void {
    this.#recent.push(now());
    if (this.#recent.length > MOST_PER_SECOND) this.#recent.shift();
  }

  /** No member answers, as the last so many requests have found out. */
  down(requests: number): void {
    if (this.#down) return;
    this.#down = true;
    // What was sent while it answered is not held against it.
    this.#recent.splice(0, Math.max(this.#recent.length - requests, 0));
  }

  /** A member has answered. */
  up(): void {
    this.#down = false;
    for (const take of this.#queue) take();
    this.#arm();
  }

  /** Lets the first in the queue go as soon as it may. */
  #arm(): void {
    clearTimeout(this.#timer);
    const [take] = this.#queue;
    if (!take) return;
    this.#timer = setTimeout(
      () => {
        take();
        this.#arm();
      },
      Math.max(this.#due() - now(), 0),
    );
    if (this.#refs === 0) this.#timer.unref();
  }

  #due(): number {
    const last = this.#recent.at(-1) ?? Number.NEGATIVE_INFINITY;
    const oldest = this.#recent.length < MOST_PER_SECOND ? Number.NEGATIVE_INFINITY : (this.#recent[0] ?? 0);
    return Math.max(last + BETWEEN * (1 + Math.random()), oldest + 1000);
  }
}
