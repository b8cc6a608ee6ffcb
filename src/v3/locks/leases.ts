import { randomBytes } from 'node:crypto';
import { ignore, orAborted, Scope } from '../../cancellation.ts';
import { EtcdException } from '../../errors.ts';
import type { RenewalOptions } from '../../recipe/store.ts';
import { Deadline, now } from '../../time.ts';
import type { LeaseRenewal } from '../answers.ts';
import type { CallOptions, V3Client } from '../client.ts';
import { NotFound } from '../errors.ts';
import { endLease } from './lease-end.ts';
import { hedgeRenewalAfter } from './timing.ts';

/** An entry that hangs on a lease. */
export interface Tenant {
  /** Its key. */
  readonly key: string;
  /** Called when the lease is kept alive by others only: the entry has not been renewed for a TTL, and must not stay longer. */
  onExpired(): void;
}

/** A renewal that several tickets wait for. */
class Round {
  readonly renewal: Promise<LeaseRenewal>;
  readonly stop = new Scope();
  /** Those whose entries it reads; undefined before it begins: all that the lease then has. */
  tenants: Set<Tenant> | undefined;
  waiting = 0;

  constructor(renew: (round: Round) => Promise<LeaseRenewal>) {
    this.renewal = renew(this);
  }
}

const ifUsable = (round: Round | undefined): Round | undefined => (round?.stop.aborted ? undefined : round);

/**
 * Returns an id for a new lease: positive, because members may disagree about a negative one. Its highest bit is set, unlike in the
 * ids that a bridge chooses.
 */
const freshId = (): string => String((randomBytes(8).readBigUInt64BE() >> 1n) | (1n << 62n));

/** A lease of etcd, and the entries that hang on it. */
export class EtcdLease {
  readonly id = freshId();
  /** The TTL asked for, in seconds. */
  readonly ttl: number;
  /** Whether it may have several tenants, any of which keeps it alive. */
  readonly isShared: boolean;
  readonly #client: V3Client;
  /** Each with the time at which it was renewed last: milliseconds on the monotonic clock. */
  readonly #tenants = new Map<Tenant, number>();
  #granted = 0;
  #sentAt = Number.NEGATIVE_INFINITY;
  #granting: Promise<void> | undefined;
  #isOver = false;
  #takesNone = false;
  #round: Round | undefined;
  /** Begins when the one under way has ended. */
  #nextRound: Round | undefined;
  #last: { readonly renewal: LeaseRenewal; readonly tenants: Set<Tenant> } | undefined;

  constructor(client: V3Client, ttl: number, isShared: boolean) {
    this.#client = client;
    this.ttl = ttl;
    this.isShared = isShared;
  }

  /** Whether the lease has ended, or is being ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Seconds for which the store keeps the lease, counted from {@link EtcdLease.sentAt}. */
  get granted(): number {
    return this.#granted;
  }

  /** When the lease was last created or kept alive: milliseconds on the monotonic clock. */
  get sentAt(): number {
    return this.#sentAt;
  }

  /** Whether its entries stay: it has neither ended nor run out. */
  get isAlive(): boolean {
    return !this.#isOver && !this.#expiry.passed;
  }

  /** Whether new entries may hang on this lease. */
  get takesEntries(): boolean {
    return !this.#isOver && !this.#takesNone && (this.#granted === 0 || !this.#expiry.passed);
  }

  /** When the lease has certainly ended unless it is kept alive. The store may end it up to some seconds later. */
  get #expiry(): Deadline {
    return new Deadline(this.#sentAt + this.#granted * 1000);
  }

  /** Creates the lease if that has not been done, or keeps it alive if a third of its TTL has passed. */
  async prepare({ signal, background }: CallOptions): Promise<void> {
    if (this.#granted === 0) await this.#grant({ signal, background });
    else if (now() >= this.#sentAt + (this.#granted * 1000) / 3)
      await this.renew(undefined, { signal, timeout: this.#expiry.remaining / 1000 });
  }

  /** Call this when etcd says that there is no such lease. */
  setGone(): void {
    this.#isOver = true;
  }

  add(tenant: Tenant): void {
    this.#tenants.set(tenant, now());
  }

  /** The tenant's entry hangs on the lease now. What was read before says nothing about it. */
  entered(tenant: Tenant): void {
    this.add(tenant);
    this.#round?.tenants?.delete(tenant);
    this.#last?.tenants.delete(tenant);
  }

  /**
   * Call this when an entry is gone, or certainly not there.
   * @param unclear whether a request may still create it again, later. The lease then takes no further entries, and is ended once
   * it has none.
   */
  remove(tenant: Tenant, unclear = false): void {
    this.#tenants.delete(tenant);
    if (unclear) this.#takesNone = true;
    if ((this.#takesNone || !this.isShared) && this.#tenants.size === 0) this.end(unclear);
  }

  /** Makes the lease take no further entries. It is ended once it has none. */
  retire(): void {
    this.#takesNone = true;
    if (this.#tenants.size === 0) this.end();
  }

  /**
   * Keeps the lease alive, and reads its entries. One request serves all tickets that ask for it at the same time, and those
   * whose entry was read by a later renewal than the one that they know.
   * @param since the `sentAt` of the renewal that the caller knows
   * @throws {NotFound} if the lease is gone
   */
  async renew(
    tenant: Tenant | undefined,
    { signal, timeout }: RenewalOptions,
    since = Number.POSITIVE_INFINITY,
  ): Promise<LeaseRenewal> {
    const last = this.#last;
    if (last && tenant && last.tenants.has(tenant) && last.renewal.sentAt > since) return last.renewal;
    const round = this.#roundFor(tenant, timeout);
    round.waiting += 1;
    try {
      const renewal = await (signal ? orAborted(round.renewal, signal) : round.renewal);
      if (tenant && this.#tenants.has(tenant)) this.add(tenant);
      return renewal;
    } finally {
      round.waiting -= 1;
      if (round.waiting === 0) round.stop.abort(new Error('nobody waits for this renewal'));
    }
  }

  /**
   * Ends the lease, in the background, until that is done or it has expired.
   * @param matters whether an entry may still be created on it, so that closing the client must report it
   */
  end(matters = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#granted === 0 && !this.#granting) return;
    const ended = this.#endOnceGranted();
    if (matters) this.#client.pending.add(`lease ${this.id}`, ended);
    else this.#client.leases.ends(ended);
  }

  /** A member that carries out the grant after the end would leave the lease until its TTL has passed. */
  async #endOnceGranted(): Promise<void> {
    await this.#granting?.catch(ignore);
    await endLease(this.#client, this.id, Deadline.after(Math.max(this.#granted, this.ttl)));
  }

  #roundFor(tenant: Tenant | undefined, timeout: number): Round {
    const present = ifUsable(this.#round);
    if (present && (!tenant || present.tenants?.has(tenant))) return present;
    const limit = Deadline.after(timeout);
    if (!present && !ifUsable(this.#nextRound)) return new Round((round) => this.#renewOnce(round, limit));
    // The entry is newer than the renewal under way. All such entries wait for one more: a renewal for each, which also reads all
    // others, would be more work with each entry.
    this.#nextRound = ifUsable(this.#nextRound) ?? new Round((round) => this.#renewAfter(present, round, limit));
    return this.#nextRound;
  }

  async #renewAfter(earlier: Round | undefined, round: Round, limit: Deadline): Promise<LeaseRenewal> {
    await earlier?.renewal.catch(ignore);
    if (this.#nextRound === round) this.#nextRound = undefined;
    round.stop.throwIfAborted();
    return this.#renewOnce(round, limit);
  }

  async #renewOnce(round: Round, limit: Deadline): Promise<LeaseRenewal> {
    this.#round = round;
    const tenants = this.#renewed();
    round.tenants = tenants;
    const keys = [...tenants].map(({ key }) => key);
    const timing = { timeout: limit.remaining / 1000, attemptTimeout: hedgeRenewalAfter(this.ttl) };
    try {
      const renewal = await this.#client.requests.renew(this.id, keys, { signal: round.stop, ...timing });
      this.#granted = renewal.granted;
      this.#sentAt = Math.max(this.#sentAt, renewal.sentAt);
      this.#last = { renewal, tenants };
      return renewal;
    } catch (error) {
      if (error instanceof NotFound) this.setGone();
      throw error;
    } finally {
      if (this.#round === round) this.#round = undefined;
    }
  }

  /** Returns the tenants whose entries are renewed. Notifies those that others only keep on the lease. */
  #renewed(): Set<Tenant> {
    const since = now() - this.#granted * 1000;
    const renewed = new Set<Tenant>();
    for (const [tenant, renewedAt] of this.#tenants)
      if (renewedAt >= since) renewed.add(tenant);
      else tenant.onExpired();
    return renewed;
  }

  async #grant({ signal, background }: CallOptions): Promise<void> {
    // Several calls may wait for the same lease, so no signal of one of them ends the request.
    this.#granting ??= this.#client.requests.grant(this.id, this.ttl, { background }).then(
      ({ granted, sentAt }) => {
        this.#granted = granted;
        this.#sentAt = sentAt;
      },
      (error: unknown) => {
        // The lease may have been created, or may be created later: end it.
        if (error instanceof EtcdException && error.outcomeUnknown) this.end();
        this.#isOver = true;
        throw error;
      },
    );
    await (signal ? orAborted(this.#granting, signal) : this.#granting);
  }
}

/** The leases of one client: one for each TTL, shared by all entries that are kept alive. */
export class Leases {
  readonly #client: V3Client;
  readonly #shared = new Map<number, EtcdLease>();
  /** Leases without entries that are being ended. They would expire by themselves. */
  readonly #ending = new Set<Promise<void>>();

  constructor(client: V3Client) {
    this.#client = client;
  }

  /** Adds a lease that is being ended. */
  ends(ended: Promise<void>): void {
    this.#ending.add(ended);
    void ended.then(() => this.#ending.delete(ended));
  }

  /** Ends all leases without entries, and waits for that until the deadline. */
  async settle(until: Deadline): Promise<void> {
    for (const lease of this.#shared.values()) lease.retire();
    this.#shared.clear();
    const scope = new Scope().abortAt(until, () => undefined);
    await orAborted(Promise.all(this.#ending), scope).catch(ignore);
    scope.dispose();
  }

  /** Returns the lease for entries with this TTL that are kept alive. */
  shared(ttl: number): EtcdLease {
    const known = this.#shared.get(ttl);
    if (known?.takesEntries) return known;
    known?.retire();
    const lease = new EtcdLease(this.#client, ttl, true);
    this.#shared.set(ttl, lease);
    return lease;
  }

  /** Returns a new lease for one entry. */
  single(ttl: number): EtcdLease {
    return new EtcdLease(this.#client, ttl, false);
  }
}
