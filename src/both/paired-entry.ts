import { isTwin } from '../recipe/entries/bridged-value.ts';
import type {
  LeaveOptions,
  OwnEntry,
  QueueStore,
  Standing,
  StandingOptions,
  StoreCall,
  Terms,
  Ticket,
  TicketOptions,
} from '../recipe/store.ts';
import type { Pair } from './pair.ts';

/** What is known of the entry. */
type Existence =
  /** No request to create it was sent since its removal. */
  | 'absent'
  /** This ticket has not created it, but an earlier process with the same value may have left it. */
  | 'left over'
  /** A request to create it was sent. */
  | 'possible'
  /** An answer has shown it. */
  | 'present';

/** The entry on v3 of a ticket that has an entry on v2, too. It is created after that one, and removed before it. */
export class PairedEntry {
  readonly ticket: Ticket;
  readonly #queues: Pair<QueueStore>;
  #existence: Existence;
  /** Number of tries to enter the queue that have failed since the last success. */
  #failed = 0;

  constructor(queues: Pair<QueueStore>, value: string, options: TicketOptions) {
    this.ticket = queues.v3.ticket(value, options);
    this.#queues = queues;
    this.#existence = options.mayExist ? 'left over' : 'absent';
  }

  /** The entry, if an answer has shown it. */
  get own(): OwnEntry | undefined {
    return this.#existence === 'present' ? this.ticket.last : undefined;
  }

  /** Whether this ticket may have an entry. */
  get mayExist(): boolean {
    return this.#existence === 'possible' || this.#existence === 'present';
  }

  async find(options?: StoreCall): Promise<void> {
    if (await this.ticket.find(options)) this.#existence = 'present';
    else if (this.#existence === 'present') this.#existence = 'possible';
  }

  /** Enters the queue, or renews the entry. Resolves to undefined if that entry was found to be gone. */
  async enter({ ttl, keepAlive }: Terms, { signal }: StoreCall): Promise<OwnEntry | undefined> {
    if (this.#existence !== 'present') this.#existence = 'possible';
    try {
      const own = await this.ticket.enter(ttl, { signal, keepAlive, failed: this.#failed });
      this.#failed = 0;
      this.#existence = own ? 'present' : 'possible';
      return own;
    } catch (error) {
      this.#failed += 1;
      throw error;
    }
  }

  async leave(options: LeaveOptions): Promise<void> {
    if (this.#existence === 'present') this.#existence = 'possible';
    await this.ticket.leave(options);
    if (this.#existence === 'possible') this.#existence = 'absent';
  }

  /**
   * Removes the entry that an earlier process with the same value has left here alone. The client that is first on v2 may wait for
   * that entry, while the own entry waits on v2.
   */
  async removeLeftover(options: StoreCall): Promise<void> {
    if (this.#existence !== 'left over') return;
    if (await this.ticket.find(options)) await this.ticket.leave(options);
    this.#existence = 'absent';
  }

  /**
   * Returns the standing. While another entry holds the lock, removes twins without an entry on v2: perhaps no bridge is left to do so,
   * and the clients before the own entry wait for such a twin.
   */
  async standing(options: StandingOptions): Promise<Standing> {
    for (const evicted = new Set<bigint>(); ; ) {
      const standing = await this.ticket.standing(options);
      if (!standing.behind || !(await this.#evictStaleTwins(evicted, options))) return standing;
    }
  }

  /** Returns whether there were any, apart from those in `evicted`. */
  async #evictStaleTwins(evicted: Set<bigint>, options: StoreCall): Promise<boolean> {
    const { v2, v3 } = this.#queues;
    const twins = (await v3.read(options)).entries.filter((entry) => isTwin(entry) && !evicted.has(entry.rank));
    if (twins.length === 0) return false;
    const onV2 = new Set((await v2.read(options)).entries.map(({ key }) => key));
    const stale = twins.filter(({ key }) => !onV2.has(key));
    for (const twin of stale) {
      await v3.evict(twin, options);
      evicted.add(twin.rank);
    }
    return stale.length > 0;
  }
}
