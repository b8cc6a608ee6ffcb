import { addAbortListener, ignore, removeAbortListener, Scope } from '../cancellation.ts';
import { EtcdLockLost, EtcdLockReleased } from '../errors.ts';
import { alive } from '../recipe/alive.ts';
import type { Call } from '../recipe/attempt.ts';
import { contend } from '../recipe/contend.ts';
import { formatValue, type LockMode, parseValue } from '../recipe/entry-value.ts';
import { Lease } from '../recipe/lease.ts';
import { leave } from '../recipe/leave.ts';
import { removeLeftOvers } from '../recipe/leftovers.ts';
import { exclusive, holdsUp, shared } from '../recipe/rules.ts';
import type { KeysApi } from '../v2/keys-api.ts';
import { freshUuid, type Place } from '../v2/locks/entry.ts';
import { type Contender, readQueue } from '../v2/locks/queue.ts';
import { Claim } from '../v2/locks/ticket.ts';

export interface StayOptions {
  /** Where the queue is. */
  readonly path: string;
  readonly mode: LockMode;
  readonly identity: string | undefined;
  /** Seconds. */
  readonly ttl: number;
  /** Seconds; undefined for the default. */
  readonly margin: number | undefined;
  /** Give up at once where it would have to wait. */
  readonly ifAvailable: boolean;
}

/**
 * Queues up with a fresh entry, kept alive from now on, and waits until the lock is ours. Resolves to nothing when it is
 * not available and must not be waited for. No key stays behind on any way out but a hold.
 * @param onQueued called with our place in the queue once it is taken
 */
export function begin(
  keys: KeysApi,
  call: Call,
  options: StayOptions,
  onQueued: (place: Place) => void,
): Promise<Stay | undefined> {
  const begun = attempt(keys, call, options, onQueued);
  keys.cleanups.add(options.path, begun.then(ignore, ignore));
  return begun;
}

async function attempt(
  keys: KeysApi,
  call: Call,
  { path, mode, identity, ttl, margin, ifAvailable }: StayOptions,
  onQueued: (place: Place) => void,
): Promise<Stay | undefined> {
  call.assertGoesOn(); // it may have ended as its turn came
  const { signal, persist } = call;
  const isLeftOver = ({ value }: Contender): boolean =>
    identity !== undefined && parseValue(value).identity === identity && !alive.has(value);
  const claim = new Claim(keys, path, formatValue({ mode, identity, uuid: freshUuid() }), false);
  let lease: Lease | undefined;
  try {
    // Looks before it queues up: a poller should not hold up those who only try, too.
    if (ifAvailable && (await isTaken(keys, call, { path, mode }, isLeftOver))) return undefined;
    alive.add(claim.uuid);
    const place = await claim.take(ttl, { signal, persist, onGone: ignore });
    call.assertGoesOn();
    lease = new Lease(keys, place, { margin, onRenewal: (renewed) => claim.update(renewed) });
    call.abortWith(lease.loss);
    lease.keepAlive();
    onQueued(place);
    const rule = mode === 'shared' ? shared : exclusive;
    const held = await contend(keys, { path, rule, lease, claim, call, isLeftOver }, !ifAvailable);
    call.assertGoesOn();
    if (held) return new Stay(keys, claim, lease);
    await give(claim, lease);
    return undefined;
  } catch (error) {
    const reason = call.explain(error);
    await give(claim, lease, reason);
    throw reason;
  }
}

function isTaken(
  keys: KeysApi,
  { signal, persist }: Call,
  { path, mode }: Pick<StayOptions, 'path' | 'mode'>,
  isLeftOver: (entry: Contender) => boolean,
): Promise<boolean> {
  const read = () => readQueue(keys, path, { quorum: true, signal });
  return persist(async () => {
    const queue = await read();
    const { entries } = (await removeLeftOvers(keys, queue, isLeftOver, { signal })) ? await read() : queue;
    return entries.some((entry) => holdsUp(entry, mode));
  });
}

/** Resolves to why the key could not be removed yet, if so. */
function give(claim: Claim, lease: Lease | undefined, why?: unknown): Promise<unknown> {
  lease?.stop();
  alive.delete(claim.uuid);
  return leave(claim, why);
}

/** The time an entry of ours holds its lock. */
export class Stay {
  readonly #keys: KeysApi;
  readonly #claim: Claim;
  readonly #lease: Lease;
  /** What is done under a lock may be many things at once. */
  readonly #lost = new Scope();
  readonly #onClosing = (reason: unknown): void => this.#lease.lose(reason);
  #left: Promise<unknown> | undefined;
  #tellLeft: () => void = ignore;

  constructor(keys: KeysApi, claim: Claim, lease: Lease) {
    this.#keys = keys;
    this.#claim = claim;
    this.#lease = lease;
    addAbortListener(lease.loss, (cause) => this.#lost.abort(this.#lossBy(cause)));
    // What cannot be renewed any more is told at once, while there is time to end the work and remove the key.
    addAbortListener(keys.cleanups.closing, this.#onClosing);
    keys.cleanups.add(this.place.key, new Promise((resolve) => (this.#tellLeft = resolve)));
  }

  get place(): Place {
    return this.#lease.place;
  }

  /** Aborts with an `EtcdLockLost`. */
  get loss(): Scope {
    return this.#lost;
  }

  /** Seconds; 0 once lost or left. */
  get expiresIn(): number {
    return this.#left ? 0 : this.#lease.expiresIn;
  }

  /**
   * @throws {EtcdLockLost}
   * @throws {EtcdLockReleased} once left without a loss
   */
  assertHeld(): void {
    if (!this.#left && this.#lease.valid) return;
    this.#lost.throwIfAborted();
    throw new EtcdLockReleased(`${this.place.key} was released`);
  }

  /** Gives the lock back. Resolves within a moment, to why the key could not be removed yet, if so. */
  leave(): Promise<unknown> {
    this.#left ??= this.#leave();
    return this.#left;
  }

  async #leave(): Promise<unknown> {
    removeAbortListener(this.#keys.cleanups.closing, this.#onClosing);
    const trouble = await give(this.#claim, this.#lease);
    this.#tellLeft();
    return trouble;
  }

  #lossBy(cause: unknown): EtcdLockLost {
    const why = cause instanceof Error ? cause.message : String(cause);
    return new EtcdLockLost(`${this.#claim.path} is held no more: ${why}`, { cause });
  }
}
