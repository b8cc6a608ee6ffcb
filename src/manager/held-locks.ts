import { withCallersStack } from '../base/callers-stack.ts';
import { Scope } from '../base/cancellation.ts';
import { show } from '../base/checks.ts';
import type { Deadline } from '../base/time.ts';
import { type Ending, endAfter } from './ending.ts';
import type { Held } from './held.ts';
import type { Hold } from './hold.ts';
import type { CheckedRequest } from './options.ts';
import { runInside } from './reentrance.ts';

/** Several held locks, as the callback of a request for several names gets them. */
export interface HeldLocks {
  /** The hold of each lock, in the order of the names in the request. */
  readonly all: readonly Held[];
  /**
   * Returns the hold of one lock, for example for its fencing token.
   * @throws {RangeError} for a name that is not in the request
   */
  get(name: string): Held;
  /** Aborts with the `EtcdLockLost` of the first lock that is lost, like {@link Held.signal}. A release does not abort it. */
  readonly signal: AbortSignal;
  /** Returns the seconds for which all locks are certainly held, even if no renewal succeeds; 0 once one is lost or released. */
  expiresIn(): number;
  /**
   * Throws unless all locks are held.
   * @throws {EtcdLockLost} when one was lost
   * @throws {EtcdLockReleased} when they were released
   */
  assertHeld(): void;
  /** Returns the `toJSON()` of each hold, for `JSON.stringify`. */
  toJSON(): readonly ReturnType<Held['toJSON']>[];
}

/** Several locks held without a callback, until {@link OpenHeldLocks.release} is called. */
export interface OpenHeldLocks extends HeldLocks {
  /** Releases all locks. Resolves to true if all were held until this call. Never rejects; see {@link OpenHeld.release}. */
  release(): Promise<boolean>;
  /** Releases all locks at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * The holds of one request for several locks. They end together.
 * @internal
 */
export class HoldOfSeveral {
  readonly #holds: readonly Hold[];
  readonly #held: HeldLocks;
  readonly #loss: Scope;

  /** @param holds in the order in which the caller gets them */
  constructor(holds: readonly Hold[]) {
    this.#holds = holds;
    const all = holds.map(({ held }) => held);
    this.#loss = new Scope(...all.map(({ signal }) => signal));
    this.#held = new HeldLocksView(all, this.#loss);
  }

  begin(times: Pick<CheckedRequest, 'holdAtLeast' | 'maxHold'>): this {
    for (const hold of this.#holds) hold.begin(times);
    return this;
  }

  /**
   * Runs the work, then releases all locks, as {@link Hold.run} does with one.
   * @throws {EtcdLockLost} if the work returned, but a lock was lost
   */
  run<T>(work: (held: HeldLocks) => T | PromiseLike<T>): Promise<T> {
    const inside = this.#holds.reduce<() => T | PromiseLike<T>>(
      (inner, hold) => () => runInside(hold, inner),
      () => work(this.#held),
    );
    return endAfter(inside, () => this.#end());
  }

  opened(): OpenHeldLocks {
    const release = async (): Promise<boolean> => (await this.#end()).lost === undefined;
    const dispose = async (): Promise<void> => {
      await release();
    };
    return Object.assign(this.#held, { release, [Symbol.asyncDispose]: dispose });
  }

  async #end(): Promise<Ending> {
    const { lost, cleanupError } = await endAll(this.#holds);
    this.#loss.dispose();
    // The loss that came first in time: it aborted the signal.
    return { lost: lost && this.#loss.reason, cleanupError };
  }
}

/**
 * Ends all holds at once. Resolves to the first loss and cleanup error in the order of `holds`, if any.
 * @param deadline see {@link Hold.end}
 * @internal
 */
export async function endAll(holds: readonly Hold[], deadline?: Deadline): Promise<Ending> {
  // Release no lock while a reentrant request runs under another one. That request may request the released lock again,
  // and then wait for clients that wait for the locks still held here.
  while (holds.some((hold) => hold.isJoined)) await Promise.all(holds.map((hold) => hold.whileJoined()));
  const endings = await Promise.all(holds.map((hold) => hold.end(deadline)));
  const first = (what: keyof Ending): unknown => endings.map((ending) => ending[what]).find((one) => one !== undefined);
  return { lost: first('lost'), cleanupError: first('cleanupError') };
}

class HeldLocksView implements HeldLocks {
  readonly all: readonly Held[];
  readonly #loss: Scope;

  constructor(all: readonly Held[], loss: Scope) {
    this.all = all;
    this.#loss = loss;
  }

  get(name: string): Held {
    const held = this.all.find((one) => one.name === name);
    if (held) return held;
    const names = this.all.map((one) => show(one.name)).join(', ');
    throw new RangeError(`the request does not include the lock ${show(name)}, only ${names}`);
  }

  get signal(): AbortSignal {
    return this.#loss.signal;
  }

  expiresIn(): number {
    return Math.min(...this.all.map((held) => held.expiresIn()));
  }

  assertHeld(): void {
    if (this.#loss.aborted) throw withCallersStack(this.#loss.reason);
    for (const held of this.all) held.assertHeld();
  }

  toJSON(): readonly ReturnType<Held['toJSON']>[] {
    return this.all.map((held) => held.toJSON());
  }
}
