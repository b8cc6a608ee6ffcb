import { ignore, pause, Scope } from '../base/cancellation.ts';
import { mayPassAtRenewal } from '../base/password-refused.ts';
import { claimOf } from '../recipe/entries/entry-value.ts';
import { checkLimits } from '../recipe/entries/limits.ts';
import { noEntry } from '../recipe/entries/lost.ts';
import { positionIn } from '../recipe/rules.ts';
import type {
  EnterOptions,
  Entry,
  FencingTokens,
  LeaveOptions,
  OwnEntry,
  QueueStore,
  RenewalOptions,
  Standing,
  StandingOptions,
  StoreCall,
  Terms,
  Ticket,
  TicketOptions,
} from '../recipe/store.ts';
import { combined } from './own-entry.ts';
import type { Pair } from './pair.ts';
import { PairedEntry } from './paired-entry.ts';

/** Maximum seconds that the removal on v2 waits for the removal on v3: a release must not take long if v3 does not answer. */
const V3_FIRST_FOR = 0.25;

/**
 * A {@link Ticket} with an entry in the queue on etcd v2. Once that entry holds the lock there, the ticket also enters
 * the queue on v3. The lock is held only while both entries hold it. If one of them is lost, the lock is lost.
 *
 * Every client of both APIs enters the queue on v2 first, and has no entry on v3 while it waits on v2. So no two clients wait for
 * each other.
 */
export class BothTicket implements Ticket {
  readonly path: string;
  readonly value: string;
  readonly #v2: Ticket;
  readonly #v3: PairedEntry;
  /** Maps the key on v2 to the key on v3, for each ticket with an entry in both queues. */
  readonly #keysOnV3: Map<string, string>;
  #terms: Terms = { ttl: null, keepAlive: false };
  /** Whether the own entry is in the queue on v2. */
  #isOnV2 = false;
  /** The ticket of the queue that the last standing was read from. {@link changed} waits there. */
  #waiting: Ticket;

  constructor(queues: Pair<QueueStore>, value: string, keysOnV3: Map<string, string>, options: TicketOptions = {}) {
    this.#v2 = queues.v2.ticket(value, options);
    this.#v3 = new PairedEntry(queues, value, options);
    this.path = this.#v2.path;
    this.value = value;
    this.#keysOnV3 = keysOnV3;
    this.#waiting = this.#v2;
  }

  get last(): OwnEntry | undefined {
    return this.#v2.last;
  }

  get fencingTokens(): FencingTokens {
    return { ...this.#v2.fencingTokens, ...this.#v3.ticket.fencingTokens };
  }

  async enter(ttl: number | null, { replacing: _, ...options }: EnterOptions): Promise<OwnEntry | undefined> {
    this.#terms = { ttl, keepAlive: options.keepAlive };
    // Remove the entry on v3 first: the new entry on v2 may wait for clients that wait for the one on v3.
    if (!this.#isOnV2 && this.#v3.mayExist) await this.#leaveV3(options);
    const own = await this.#v2.enter(ttl, options);
    this.#isOnV2 = own !== undefined;
    if (!own || !this.#v3.mayExist) return own;
    if (await this.#enterV3(options)) return this.#own();
    this.#isOnV2 = false;
    await this.#v2.leave(options);
    return undefined;
  }

  async find(options?: StoreCall): Promise<OwnEntry | undefined> {
    const own = await this.#v2.find(options);
    this.#isOnV2 = own !== undefined;
    if (!own) return undefined;
    await this.#v3.find(options);
    return own;
  }

  async standing(options: StandingOptions): Promise<Standing> {
    // Only a python-etcd that re-creates its expired key can get ahead of an entry that has held the lock on v2. It
    // never waits on v3, so there is no deadlock. A member that lags behind may still show earlier entries, so read by
    // quorum.
    const latest = options.latest || this.#v3.mayExist;
    const outer = await this.#v2.standing({ ...options, latest });
    this.#waiting = this.#v2;
    if (outer.behind) {
      await this.#v3.removeLeftover(options);
      return this.#v3.mayExist ? { ...outer, own: this.#own() } : outer;
    }
    const { limit } = claimOf(this.value);
    // Before the own entry is on v3: there, it might be the first one that has a limit.
    if (outer.ahead) checkLimits(this.path, outer.ahead(), limit);
    while (!this.#v3.own) await this.#enterV3(options);
    const inner = await this.#v3.standing(options);
    this.#waiting = this.#v3.ticket;
    const own = this.#own();
    const position = positionIn(inner);
    // Here, because ranks of different stores cannot be compared. Without `ahead`, the recipe checks no limits, and reads both queues
    // to find leftovers.
    if (inner.ahead) checkLimits(this.path, inner.ahead(), limit);
    if (inner.behind) return { ...inner, own, ahead: undefined, position };
    const ahead =
      limit === undefined ? () => [inner, outer].flatMap((standing) => standing.ahead?.() ?? []) : undefined;
    return { ...outer, own, ahead, position };
  }

  changed(on: Entry, options: StoreCall): Promise<boolean> {
    return this.#waiting.changed(on, options);
  }

  async renew({ signal, timeout }: RenewalOptions): Promise<OwnEntry> {
    const tickets = this.#v3.own ? [this.#v2, this.#v3.ticket] : [this.#v2];
    const ending = new Scope(signal);
    const renewals = tickets.map(async (ticket) => {
      try {
        await ticket.renew({ signal: ending, timeout });
      } catch (error) {
        // A loss ends both renewals at once. After a failure that may pass, the other entry is still renewed.
        if (!mayPassAtRenewal(error)) ending.abort(error);
        throw error;
      }
    });
    await Promise.allSettled(renewals);
    const { aborted, reason } = ending;
    ending.dispose();
    if (aborted) throw reason;
    await Promise.all(renewals);
    return this.#own();
  }

  async verify(): Promise<Error | undefined> {
    const [outer, inner] = await Promise.all([this.#v2.verify(), this.#v3.own && this.#v3.ticket.verify()]);
    return outer ?? inner;
  }

  watch(onLost: (why: Error) => void): () => void {
    const ends = [this.#v2, this.#v3.ticket].map((ticket) => ticket.watch?.(onLost) ?? ignore);
    return () => {
      for (const end of ends) end();
    };
  }

  /**
   * Leaves the queue on v3 first, except with `until`. The next client of both APIs then need not wait there once it
   * holds the lock on v2. Exclusion does not depend on this order, because the lock is no longer held.
   */
  async leave(options: LeaveOptions = {}): Promise<void> {
    const inner = this.#leaveV3(options);
    if (!options.until) await settledWithin(inner, V3_FIRST_FOR);
    this.#isOnV2 = false;
    const outer = this.#v2.leave(options);
    await Promise.allSettled([inner, outer]);
    await Promise.all([inner, outer]);
  }

  /** Enters the queue on v3, or renews the entry there. Resolves to false if that entry was found to be gone. */
  async #enterV3(options: StoreCall): Promise<boolean> {
    const own = await this.#v3.enter(this.#terms, options);
    if (own && this.last) this.#keysOnV3.set(this.last.key, own.key);
    return own !== undefined;
  }

  #leaveV3(options: LeaveOptions): Promise<void> {
    if (this.last) this.#keysOnV3.delete(this.last.key);
    return this.#v3.leave(options);
  }

  /** Returns the own entries of both queues as one; see {@link combined}. @throws {EtcdLockExpired} if there is none */
  #own(): OwnEntry {
    if (!this.last) throw noEntry(this.path, this.value);
    return combined(this.last, this.#v3.own);
  }
}

/** Waits until the promise has settled, at most `seconds` seconds. Never rejects. */
async function settledWithin(promise: Promise<unknown>, seconds: number): Promise<void> {
  const over = new Scope();
  const end = (): void => over.abort(undefined);
  void promise.then(end, end);
  await pause(seconds * 1000, over);
}
