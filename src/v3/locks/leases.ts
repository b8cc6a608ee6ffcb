import { randomBytes } from 'node:crypto';
import { detached } from '../../base/async-context.ts';
import { ignore, orAborted, Scope, type Source } from '../../base/cancellation.ts';
import { Deadline, now } from '../../base/time.ts';
import { EtcdException } from '../../errors.ts';
import type { RenewalOptions } from '../../recipe/store.ts';
import { NotFound } from '../gateway/errors.ts';
import type { GatewayCall } from '../gateway/gateway.ts';
import { type LeaseRenewal, leaseIdOf } from '../rpc/leases.ts';
import type { LockRequests } from '../rpc/requests.ts';
import { enterTimeout, hedgeRenewalAfter } from './timing.ts';

/** A user of a lease: the ticket whose entry is attached to the lease, or will be. */
export interface Tenant {
  /** Key of that entry. */
  readonly key: string;
  /**
   * Called when only other tenants keep this lease alive: the tenant has not renewed it for a whole TTL. If the entry is attached to
   * it, the entry must be removed.
   */
  onExpired(lease: EtcdLease): void;
}

/** A renewal of a lease. Several tickets may wait for it. */
class SharedRenewal {
  readonly renewal: Promise<LeaseRenewal>;
  readonly stop = new Scope();
  /** The tenants whose entries this renewal reads; undefined before it begins. */
  tenants: Set<Tenant> | undefined;
  /** Number of calls that wait for this renewal. */
  waiting = 0;

  constructor(renew: (shared: SharedRenewal) => Promise<LeaseRenewal>) {
    this.renewal = detached(() => renew(this));
  }
}

const ifUsable = (shared: SharedRenewal | undefined): SharedRenewal | undefined =>
  shared?.stop.aborted ? undefined : shared;

/** Creates, renews and revokes a lease of etcd for its tenants. */
export class EtcdLease {
  readonly id = leaseIdOf(randomBytes(8));
  /** The requested TTL, in seconds. */
  readonly ttl: number;
  /** Whether the lease may have several tenants. Any of them keeps it alive. */
  readonly isShared: boolean;
  readonly #requests: LockRequests;
  /** The leases of the client, to which this one belongs. */
  readonly #all: Leases;
  /** The tenants, each with the time of its last renewal: milliseconds on the monotonic clock. */
  readonly #tenants = new Map<Tenant, number>();
  #granted = 0;
  #clusterId: string | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #granting: Promise<void> | undefined;
  #isOver = false;
  /** Whether it may exist although it is over: a member may create it again by a late copy of the request, or is wrong about it. */
  #mayReturn = false;
  #takesNone = false;
  #current: SharedRenewal | undefined;
  /** The renewal that begins when the one under way has ended. */
  #next: SharedRenewal | undefined;
  #last: { readonly renewal: LeaseRenewal; readonly tenants: Set<Tenant> } | undefined;

  constructor(requests: LockRequests, all: Leases, ttl: number, isShared: boolean) {
    this.#requests = requests;
    this.#all = all;
    this.ttl = ttl;
    this.isShared = isShared;
  }

  /** Whether the lease is gone or is being revoked. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether no entry can be attached to the lease any more. */
  get isGoneForGood(): boolean {
    return this.#isOver && !this.#mayReturn;
  }

  /** The cluster that created the lease; undefined before that. */
  get clusterId(): string | undefined {
    return this.#clusterId;
  }

  /** Seconds for which the store keeps the lease, counted from {@link EtcdLease.sentAt}. */
  get granted(): number {
    return this.#granted;
  }

  /** When the lease was last created or kept alive: milliseconds on the monotonic clock. */
  get sentAt(): number {
    return this.#sentAt;
  }

  /** Whether the store still keeps the entries of the lease: it is not gone, and has not expired. */
  get isAlive(): boolean {
    return !this.#isOver && !this.#expiry.passed;
  }

  /** Whether new entries may be attached to this lease. */
  get takesEntries(): boolean {
    return !this.#isOver && !this.#takesNone && (this.#granted === 0 || !this.#expiry.passed);
  }

  /** When the lease expires at the earliest, unless it is renewed. The store may keep it for some seconds longer. */
  get #expiry(): Deadline {
    return new Deadline(this.#sentAt + this.#granted * 1000);
  }

  /**
   * Makes the lease ready for an entry: creates it, or renews it if a third of its TTL has passed.
   * @param since milliseconds on the monotonic clock; also renews the lease if it was last renewed before this time
   */
  async prepare({ signal, background }: GatewayCall, since = Number.NEGATIVE_INFINITY): Promise<void> {
    const dueAt = this.#sentAt + (this.#granted * 1000) / 3;
    if (this.#granted === 0) await this.#grant({ signal, background });
    else if (now() >= dueAt) await this.#renewFor(signal);
    while (this.#sentAt < since) await this.#renewFor(signal);
  }

  /** Call this when a member reports that the lease does not exist. A former leader says so of a lease that it has not heard of. */
  setGone(): void {
    this.#isOver = true;
    this.#mayReturn = true;
  }

  add(tenant: Tenant): void {
    this.#tenants.set(tenant, now());
  }

  /** Call this when the tenant's entry has been attached to the lease. Renewals that began before have not read this entry. */
  entered(tenant: Tenant): void {
    this.add(tenant);
    this.#current?.tenants?.delete(tenant);
    this.#last?.tenants.delete(tenant);
  }

  /**
   * Call this when a tenant's entry is gone, or was certainly never attached.
   * @param unclear whether a late request may still create the entry. The lease then takes no further entries, and is revoked when
   * it has no tenants.
   */
  remove(tenant: Tenant, unclear = false): void {
    this.#tenants.delete(tenant);
    if (unclear) this.#takesNone = true;
    if ((this.#takesNone || !this.isShared) && this.#tenants.size === 0) this.end(unclear);
  }

  /** Replaces the tenant `from` by `to`. Does nothing if `from` is not a tenant. */
  replace(from: Tenant, to: Tenant): void {
    if (this.#tenants.delete(from)) this.add(to);
  }

  /** Makes the lease take no further entries, and revokes it when it has no tenants. */
  retire(): void {
    this.#takesNone = true;
    if (this.#tenants.size === 0) this.end();
  }

  /**
   * Renews the lease and reads its entries. Tickets that call this at the same time share one renewal: the timeout of the first of
   * them applies. Sends no request if the last renewal has read the tenant's entry and is newer than `since`: resolves to that
   * renewal.
   * @param since the `sentAt` of the last renewal that the caller knows. Default: ignore the last renewal
   * @throws {NotFound} if the lease is gone
   */
  async renew(
    tenant: Tenant | undefined,
    { signal, timeout }: RenewalOptions,
    since = Number.POSITIVE_INFINITY,
  ): Promise<LeaseRenewal> {
    const last = this.#last;
    if (!this.#isOver && last && tenant && last.tenants.has(tenant) && last.renewal.sentAt > since) {
      this.#renews(tenant);
      return last.renewal;
    }
    const shared = this.#sharedFor(tenant, timeout);
    shared.waiting += 1;
    try {
      const renewal = await (signal ? orAborted(shared.renewal, signal) : shared.renewal);
      if (tenant) this.#renews(tenant);
      return renewal;
    } finally {
      shared.waiting -= 1;
      if (shared.waiting === 0) shared.stop.abort(new Error('nobody waits for this renewal'));
    }
  }

  /**
   * Revokes the lease in the background. Retries until that succeeds, the lease has expired, or the client is closed.
   * @param matters whether a late request may still create an entry with this lease. Closing the client then waits for this work,
   * and reports the lease if it was not revoked
   */
  end(matters = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#granted === 0 && !this.#granting) return;
    const ended = detached(() => this.#endOnceGranted());
    if (matters) this.#requests.gateway.pending.add(`lease ${this.id}`, ended);
    else this.#all.ends(ended);
  }

  /** Waits for a grant under way, then revokes the lease. In the other order, the lease could stay until its TTL has passed. */
  async #endOnceGranted(): Promise<void> {
    await this.#granting?.catch(ignore);
    await this.#requests.leases.revokeUntil(this.id, Deadline.after(Math.max(this.#granted, this.ttl)));
  }

  #renewFor(signal: Source | undefined): Promise<LeaseRenewal> {
    return this.renew(undefined, { signal, timeout: this.#expiry.remaining / 1000 });
  }

  /** Records that a tenant has renewed the lease, unless it is no tenant any more. */
  #renews(tenant: Tenant): void {
    if (this.#tenants.has(tenant)) this.add(tenant);
  }

  #sharedFor(tenant: Tenant | undefined, timeout: number): SharedRenewal {
    const present = ifUsable(this.#current);
    if (present && (!tenant || present.tenants?.has(tenant))) return present;
    const limit = Deadline.after(timeout);
    if (!present && !ifUsable(this.#next)) return new SharedRenewal((shared) => this.#renewOnce(shared, limit));
    // The renewal under way does not read this entry, which is newer. All such entries share the next renewal: each renewal reads
    // all entries, so one for each new entry would be too much work.
    this.#next = ifUsable(this.#next) ?? new SharedRenewal((shared) => this.#renewAfter(present, shared, limit));
    return this.#next;
  }

  async #renewAfter(earlier: SharedRenewal | undefined, shared: SharedRenewal, limit: Deadline): Promise<LeaseRenewal> {
    await earlier?.renewal.catch(ignore);
    if (this.#next === shared) this.#next = undefined;
    shared.stop.throwIfAborted();
    return this.#renewOnce(shared, limit);
  }

  async #renewOnce(shared: SharedRenewal, limit: Deadline): Promise<LeaseRenewal> {
    this.#current = shared;
    const tenants = this.#renewed();
    shared.tenants = tenants;
    const keys = [...tenants].map(({ key }) => key);
    const timing = { timeout: limit.remaining / 1000, attemptTimeout: hedgeRenewalAfter(this.ttl) };
    try {
      const renewal = await this.#requests.leases.renew(this.id, keys, { signal: shared.stop, ...timing });
      this.#granted = renewal.granted;
      this.#sentAt = Math.max(this.#sentAt, renewal.sentAt);
      this.#last = { renewal, tenants };
      return renewal;
    } catch (error) {
      if (error instanceof NotFound) this.setGone();
      throw error;
    } finally {
      if (this.#current === shared) this.#current = undefined;
    }
  }

  /** Returns the tenants that were renewed within the last TTL. Calls `onExpired` of the others. */
  #renewed(): Set<Tenant> {
    const since = now() - this.#granted * 1000;
    const renewed = new Set<Tenant>();
    for (const [tenant, renewedAt] of this.#tenants)
      if (renewedAt >= since) renewed.add(tenant);
      else tenant.onExpired(this);
    return renewed;
  }

  async #grant({ signal, background }: GatewayCall): Promise<void> {
    this.#granting ??= detached(() => this.#grantOnce(background));
    await (signal ? orAborted(this.#granting, signal) : this.#granting);
  }

  /** Several calls may wait for the same lease, so the signal of one call does not end the request. */
  async #grantOnce(background: boolean | undefined): Promise<void> {
    const leases = this.#all;
    const failed = leases.failedGrants;
    const call = { repeat: 'safe', background, attemptTimeout: enterTimeout(failed) } as const;
    try {
      const { granted, sentAt, clusterId, isRepeated } = await this.#requests.leases.grant(this.id, this.ttl, call);
      this.#mayReturn = isRepeated;
      leases.failedGrants = 0;
      this.#granted = granted;
      this.#clusterId = clusterId;
      this.#sentAt = sentAt;
    } catch (error) {
      if (error instanceof EtcdException && error.outcomeUnknown) {
        // Several leases may fail at the same time: that is one try.
        if (leases.failedGrants === failed) leases.failedGrants += 1;
        // The lease may have been created, or may be created later: revoke it.
        this.end();
      }
      this.#isOver = true;
      throw error;
    }
  }
}

/** The leases of one client: one for each TTL, shared by all entries that are kept alive. */
export class Leases {
  /** Number of tries since the last success that did not create a lease in time. Each further try gets a longer timeout. */
  failedGrants = 0;
  readonly #requests: LockRequests;
  readonly #shared = new Map<number, EtcdLease>();
  /** Revocations under way of leases without entries. If they fail, the leases expire. */
  readonly #ending = new Set<Promise<void>>();

  constructor(requests: LockRequests) {
    this.#requests = requests;
  }

  /** Registers a revocation under way, so that {@link settle} waits for it. */
  ends(ended: Promise<void>): void {
    this.#ending.add(ended);
    void ended.then(() => this.#ending.delete(ended));
  }

  /** Revokes all leases without entries. Waits for that, at most until the deadline. */
  async settle(until: Deadline): Promise<void> {
    for (const lease of this.#shared.values()) lease.retire();
    this.#shared.clear();
    const scope = new Scope().abortAt(until, () => undefined);
    await orAborted(Promise.all(this.#ending), scope).catch(ignore);
    scope.dispose();
  }

  /** Returns the lease that all renewed entries with this TTL share. */
  shared(ttl: number): EtcdLease {
    const known = this.#shared.get(ttl);
    if (known?.takesEntries) return known;
    known?.retire();
    const lease = new EtcdLease(this.#requests, this, ttl, true);
    this.#shared.set(ttl, lease);
    return lease;
  }

  /** Returns a new lease for one entry. */
  single(ttl: number): EtcdLease {
    return new EtcdLease(this.#requests, this, ttl, false);
  }
}
