import { detached } from '../../base/async-context.ts';
import { addAbortListener, removeAbortListener, type Source } from '../../base/cancellation.ts';
import { atDeadline, Deadline, now } from '../../base/time.ts';
import { EtcdConnectionFailed } from '../../errors.ts';

/** Requests of one client per second during an outage. */
const MAX_PER_SECOND = 4;
/** Minimum milliseconds between two requests. The delay is random, up to twice that, so that not all clients send at the same time. */
const INTERVAL = 75;
/** Maximum seconds a request waits for its turn. Then it fails: the requests sent before it have got no answer either. */
const MAX_WAIT = 1.5;

/**
 * Rate-limits a client's requests during an outage, when no member of the cluster answers. The members then get few requests,
 * however many calls retry. The first answer ends the outage and admits all waiting requests at once.
 */
export class RateLimit {
  /** When the last requests were sent. */
  readonly #recent: number[] = [];
  /** Functions that admit the waiting requests, in order of arrival. */
  readonly #queue = new Set<() => void>();
  /** Functions that admit requests of attempts that have sent a request before. These come first. */
  readonly #nextQueue = new Set<() => void>();
  /** How many of the waiting requests keep the process alive. */
  #refs = 0;
  #isOutage = false;
  #timer: NodeJS.Timeout | undefined;

  get isOutage(): boolean {
    return this.#isOutage;
  }

  /**
   * Resolves when a request may be sent: at once, unless there is an outage.
   * @param ending ends the wait when it aborts
   * @param ref whether the wait keeps the process alive
   * @throws the reason of `ending`
   * @throws {EtcdConnectionFailed} after 1.5 seconds without a turn
   */
  admit(ending: Source, ref: boolean): Promise<void> {
    return this.#admit(this.#queue, ending, ref);
  }

  /**
   * Like {@link RateLimit.admit}, for a further request of an attempt that has been admitted: it goes before all others, so that few
   * attempts are under way at a time. Returns undefined if the request need not wait.
   */
  admitNext(ending: Source, ref: boolean): Promise<void> | undefined {
    if (this.#isOutage) return this.#admit(this.#nextQueue, ending, ref);
    this.count();
    return undefined;
  }

  #admit(queue: Set<() => void>, ending: Source, ref: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      if (ending.aborted) return reject(ending.reason);
      const go = (): void => {
        this.count();
        resolve();
      };
      if (!this.#isOutage) return go();
      const leave = (): void => {
        removeAbortListener(ending, giveUp);
        cancel();
        queue.delete(take);
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
      const cancel = atDeadline(Deadline.after(MAX_WAIT), tooLate, { ref });
      addAbortListener(ending, giveUp);
      queue.add(take);
      if (ref) this.#refs += 1;
      this.#arm();
    });
  }

  /** Counts a request. {@link admit} does so for the requests that it admits. */
  count(): void {
    this.#recent.push(now());
    if (this.#recent.length > MAX_PER_SECOND) this.#recent.shift();
  }

  /**
   * Starts rate-limiting.
   * @param requests how many of the latest requests have shown the outage; only these count against the limit
   */
  startOutage(requests: number): void {
    if (this.#isOutage) return;
    this.#isOutage = true;
    this.#recent.splice(0, Math.max(this.#recent.length - requests, 0));
  }

  /** Stops rate-limiting: a member has answered. */
  endOutage(): void {
    if (!this.#isOutage) return;
    this.#isOutage = false;
    for (const take of [...this.#nextQueue, ...this.#queue]) take();
    this.#arm();
  }

  /** Sets the timer that admits the first waiting request. */
  #arm(): void {
    clearTimeout(this.#timer);
    const [take = first(this.#queue)] = this.#nextQueue;
    if (!take) return;
    const admit = (): void => {
      take();
      this.#arm();
    };
    this.#timer = detached(() => setTimeout(admit, Math.max(this.#nextAt() - now(), 0)));
    if (this.#refs === 0) this.#timer.unref();
  }

  /** When the next request may be sent. */
  #nextAt(): number {
    const last = this.#recent.at(-1) ?? Number.NEGATIVE_INFINITY;
    const oldest = this.#recent.length < MAX_PER_SECOND ? Number.NEGATIVE_INFINITY : (this.#recent[0] ?? 0);
    return Math.max(last + INTERVAL * (1 + Math.random()), oldest + 1000);
  }
}

const first = <T>(set: ReadonlySet<T>): T | undefined => set.values().next().value;
