import { addAbortListener, ignore } from '../cancellation.ts';
import { show } from '../checks.ts';
import type { LockMode } from '../recipe/entry-value.ts';
import type { KeysApi } from '../v2/keys-api.ts';
import { type Held, HeldLock, type OpenHeld } from './held.ts';
import type { Turn } from './local-queue.ts';
import { type Frame, runInside } from './reentrance.ts';
import type { Stay } from './stay.ts';
import type { Trace } from './trace.ts';

export interface HoldParts {
  readonly keys: KeysApi;
  readonly name: string;
  readonly stay: Stay;
  readonly turn: Turn;
  readonly trace: Trace;
}

/** How a hold ended. */
interface Ending {
  /** The `EtcdLockLost`, if it was lost. */
  readonly lost: unknown;
  /** Why the key could not be removed yet, if so. */
  readonly cleanupError: unknown;
}

type Work<T> = (held: Held) => T | PromiseLike<T>;

/** A lock that one request holds, until its callback and all that run under the same hold have ended. */
export class Hold {
  readonly keys: KeysApi;
  readonly held: HeldLock;
  /** Leads to it until nothing can run under it any more. */
  readonly frame: Frame = { hold: this };
  readonly #stay: Stay;
  readonly #turn: Turn;
  readonly #trace: Trace;
  readonly #nested = new Set<Promise<void>>();
  #ending: Promise<Ending> | undefined;

  constructor({ keys, name, stay, turn, trace }: HoldParts) {
    this.keys = keys;
    this.held = new HeldLock(name, stay);
    this.#stay = stay;
    this.#turn = turn;
    this.#trace = trace;
    turn.holder = () => ({ key: stay.place.key, value: stay.place.uuid, ttl: Math.ceil(stay.expiresIn) });
    addAbortListener(stay.loss, (error) => trace.loses(error));
    trace.holds(this.held);
  }

  /** Runs the work, then gives the lock back. The work's own error wins over one of the lock, which is attached to it. */
  async run<T>(work: Work<T>): Promise<T> {
    let result: T;
    try {
      result = await runInside(this, () => work(this.held));
    } catch (error) {
      const { lost, cleanupError } = await this.end();
      attach(error, lost ?? cleanupError);
      throw error;
    }
    const { lost } = await this.end();
    if (lost) throw lost;
    return result;
  }

  /**
   * Runs more work under this hold, which lasts until that has ended.
   * @throws {RangeError} where it would have to be held alone, but is not
   */
  async join<T>(mode: LockMode, work: Work<T>): Promise<T> {
    const { name } = this.held;
    if (mode === 'exclusive' && this.held.mode === 'shared')
      throw new RangeError(`mode must be 'shared' inside a shared hold of ${show(name)}, got ${show(mode)}`);
    this.held.assertHeld();
    const run = runInside(this, async () => work(this.held));
    const ended = run.then(ignore, ignore);
    this.#nested.add(ended);
    try {
      const result = await run;
      this.held.assertHeld();
      return result;
    } catch (error) {
      attach(error, this.#lost);
      throw error;
    } finally {
      this.#nested.delete(ended);
    }
  }

  /** Gives the lock back. Never rejects. */
  end(): Promise<Ending> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  /** The same as something its owner releases. */
  opened(): OpenHeld {
    const release = async (): Promise<boolean> => (await this.end()).lost === undefined;
    const dispose = async (): Promise<void> => {
      await release();
    };
    return Object.assign(this.held, { release, [Symbol.asyncDispose]: dispose });
  }

  get #lost(): unknown {
    // A deadline that nobody has noticed yet is noticed now.
    return this.#stay.expiresIn > 0 ? undefined : this.#stay.loss.reason;
  }

  async #end(): Promise<Ending> {
    while (this.#nested.size > 0) await Promise.all(this.#nested);
    const lost = this.#lost;
    this.frame.hold = undefined;
    const cleanupError = await this.#stay.leave();
    this.#turn.end();
    this.#trace.releases(cleanupError);
    return { lost, cleanupError };
  }
}

/** Not in its place: what failed first is what the caller has to know. So does what is attached first, where holds are nested. */
function attach(error: unknown, lockError: unknown): void {
  if (lockError === undefined || error === lockError || typeof error !== 'object' || error === null) return;
  if ('lockError' in error) return;
  Reflect.defineProperty(error, 'lockError', {
    value: lockError,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}
