import { detached } from '../base/async-context.ts';
import { Scope, type Source } from '../base/cancellation.ts';
import { createDebug } from '../base/debug.ts';
import { failureOf, keepTrying, type PendingWork, type Running, stopped } from '../base/pending-work.ts';
import { mayPass } from '../errors.ts';

const debug = createDebug('lock');

const NOTHING = Promise.resolve();

/** What a {@link Settler} works on: the entry of a ticket. */
export interface Unsettled {
  /** What the entries of two tickets have in common if one may be taken for the other: such tickets take over each other's work. */
  readonly id: string;
  /** The key with which closing the client names what is left. */
  readonly key: string;
  /** Id of the cluster of the entry; undefined if it is not known yet. */
  readonly clusterId: string | undefined;
  /** Work that closing the client waits for. */
  readonly pending: PendingWork;
  /** Maximum seconds between two attempts. */
  readonly retryEvery: number;
  /**
   * Whether something must still be done.
   * @param isClosing whether the client is being closed: only urgent work then counts
   */
  hasDuty(isClosing: boolean): boolean;
  /** Tries once to do what must still be done. Does nothing if that is nothing. */
  settle(call: { readonly signal: Source; readonly background: true }): Promise<void>;
  /** Called when the work begins. Returns a function: whether the store has certainly ended by itself what must be removed. */
  expiry(): () => boolean;
}

/**
 * Does in the background what the entry of a ticket still owes: retries until that is done, or until the store refuses it and the entry
 * has expired. Does not keep the process alive.
 */
export class Settler<T extends Unsettled> {
  readonly #owner: T;
  readonly #atWork: SettlersAtWork<T>;
  #running: Running | undefined;

  /** @param atWork the settlers of all tickets for the same store */
  constructor(owner: T, atWork: SettlersAtWork<T>) {
    this.#owner = owner;
    this.#atWork = atWork;
  }

  get isAtWork(): boolean {
    return this.#atWork.has(this);
  }

  get owner(): T {
    return this.#owner;
  }

  /** Begins to work, if the entry owes something. Must not be called while it is at work. */
  start(): void {
    if (!this.#owner.hasDuty(false)) return;
    const { key, pending } = this.#owner;
    const stop = new Scope();
    const ended = detached(() => this.#work(stop).catch((error) => debug('%s not removed: %s', key, error)));
    this.#running = { ended, stop };
    this.#atWork.add(this);
    pending.add(key, ended);
  }

  /** Stops the work, and that of earlier tickets with the same id: calls `takeOver` for each. A request under way may be carried out. */
  stop(takeOver: (earlier: T) => void): Promise<void> {
    if (!this.#running && !this.#atWork.hasId(this.#owner.id)) return NOTHING;
    return this.#stop(takeOver);
  }

  async #stop(takeOver: (earlier: T) => void): Promise<void> {
    await stopped(this.#running);
    this.#atWork.delete(this);
    for (const earlier of this.#atWork.othersFor(this)) {
      await stopped(earlier.#running);
      this.#atWork.delete(earlier);
      takeOver(earlier.#owner);
    }
  }

  async #work(signal: Scope): Promise<void> {
    const owner = this.#owner;
    const { closing } = owner.pending;
    const hasExpired = owner.expiry();
    /** Whether the last attempt failed with an error that retries will not fix, such as missing permissions. */
    let refused = false;
    const more = (isClosing: boolean): boolean => !(refused && hasExpired()) && owner.hasDuty(isClosing);
    const attempt = async (): Promise<void> => {
      const error = await failureOf(owner.settle({ signal, background: true }), signal);
      if (error === undefined) return;
      debug('%s not removed yet: %s', owner.key, error);
      refused = !mayPass(error);
    };
    try {
      await keepTrying(more, attempt, { most: owner.retryEvery, closing, signal });
    } finally {
      this.#atWork.delete(this);
    }
  }
}

/**
 * The settlers of one process that are at work on one kind of store. A later ticket with the same id takes over their work, also if it
 * belongs to another client: otherwise the work would remove the later ticket's entry.
 */
export class SettlersAtWork<T extends Unsettled> {
  readonly #byId = new Map<string, Set<Settler<T>>>();

  add(settler: Settler<T>): void {
    const { id } = settler.owner;
    const settlers = this.#byId.get(id) ?? new Set();
    this.#byId.set(id, settlers.add(settler));
  }

  delete(settler: Settler<T>): void {
    const { id } = settler.owner;
    const settlers = this.#byId.get(id);
    settlers?.delete(settler);
    if (settlers?.size === 0) this.#byId.delete(id);
  }

  hasId(id: string): boolean {
    return this.#byId.has(id);
  }

  has(settler: Settler<T>): boolean {
    return this.#byId.get(settler.owner.id)?.has(settler) ?? false;
  }

  /**
   * Returns the other settlers with the same id. Those of other clients only if they may be of the same cluster: another cluster may have
   * a lock with the same name. Those of the same client in any case: after its cluster was replaced, their requests go to the new one.
   */
  othersFor(settler: Settler<T>): Settler<T>[] {
    const { owner } = settler;
    const { pending } = owner;
    return [...(this.#byId.get(owner.id) ?? [])].filter(
      (other) => other !== settler && (other.owner.pending === pending || !isElsewhere(other.owner, owner)),
    );
  }
}

/** Whether the entries of the two tickets are certainly in different clusters. */
export function isElsewhere({ clusterId: one }: Unsettled, { clusterId: other }: Unsettled): boolean {
  return one !== undefined && other !== undefined && one !== other;
}
