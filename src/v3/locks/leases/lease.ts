import { detached } from '../../../base/async-context.ts';
import { ignore, orAborted, type Source } from '../../../base/cancellation.ts';
import { Deadline, now } from '../../../base/time.ts';
import { mayBeCarriedOut } from '../../../errors.ts';
import type { RenewalOptions } from '../../../recipe/store.ts';
import { NotFound } from '../../gateway/errors.ts';
import type { GatewayCall } from '../../gateway/gateway.ts';
import type { Header } from '../../gateway/messages.ts';
import type { LeaseRenewal } from '../../rpc/leases.ts';
import type { LockRequests } from '../../rpc/requests.ts';
import { hedgeRenewalAfter } from '../timing.ts';
import { type SharedRenewal, SharedRenewals } from './lease-renewals.ts';
import { type LeasePool, type LeaseTerms, type LeaseUser, LeaseUsers } from './lease-users.ts';
import { Strays } from './strays.ts';

/** Creates, renews and revokes a lease of etcd for its users. */
export class EtcdLease implements LeaseTerms {
  readonly id: string;
  readonly ttl: number;
  readonly isShared: boolean;
  readonly #requests: LockRequests;
  readonly #pool: LeasePool;
  readonly #renewals: SharedRenewals;
  readonly #users = new LeaseUsers();
  readonly #strays: Strays;
  #granted = 0;
  #clusterId: string | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #granting: Promise<void> | undefined;
  #isOver = false;
  /** Whether it may exist although it is over: a member may create it again by a late copy of the request, or is wrong about it. */
  #mayReturn = false;
  #isRetired = false;
  /** The raft term of the last keep-alive, if no read has followed it. */
  #keptAliveIn: string | undefined;

  constructor(requests: LockRequests, pool: LeasePool, { id, ttl, isShared }: LeaseTerms) {
    this.#requests = requests;
    this.#pool = pool;
    this.#renewals = new SharedRenewals(this.#renewOnce);
    this.#strays = new Strays(id, this.#users);
    this.id = id;
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
    return !this.#isOver && !this.#isRetired && (this.#granted === 0 || !this.#expiry.passed);
  }

  /** When the lease expires at the earliest, unless it is renewed. The store may keep it for some seconds longer. */
  get #expiry(): Deadline {
    return new Deadline(this.#sentAt + this.#granted * 1000);
  }

  /**
   * Makes the lease ready for an entry: creates it, or renews it if a third of its TTL has passed. A free lease is always renewed.
   * @param since milliseconds on the monotonic clock; also renews the lease if it was last renewed before this time
   */
  async prepare(call: GatewayCall, since = Number.NEGATIVE_INFINITY): Promise<void> {
    const { signal } = call;
    const dueAt = this.#sentAt + (this.#granted * 1000) / 3;
    if (this.#granted === 0) await this.#grant(call);
    else if (!this.isShared) await this.#keepAlive(signal);
    else if (now() >= dueAt) await this.#renewFor(signal);
    while (this.#sentAt < since) await this.#renewFor(signal);
  }

  /**
   * Whether the answer to a write that has attached an entry shows that the lease lasts as long as {@link EtcdLease.granted} says. If
   * the member has answered the write in a later term than the keep-alive, the leader that kept the lease alive may have been replaced before.
   */
  isConfirmedBy({ raftTerm }: Pick<Header, 'raftTerm'>): boolean {
    return this.#keptAliveIn === undefined || this.#keptAliveIn === raftTerm;
  }

  /** Call this when a member reports that the lease does not exist. A former leader says so of a lease that it has not heard of. */
  setGone(): void {
    this.#isOver = true;
    this.#mayReturn = true;
  }

  add(user: LeaseUser): void {
    this.#users.add(user);
  }

  /** Call this when the user's entry has been attached to the lease. Renewals that began before have not read this entry. */
  entered(user: LeaseUser): void {
    this.add(user);
    this.#renewals.entered(user);
  }

  /**
   * Call this when a user's entry is gone, or was certainly never attached.
   * @param unclear whether a late request may still create the entry. The lease then takes no further entries, and is revoked when
   * it has no users.
   */
  remove(user: LeaseUser, unclear = false): void {
    this.#users.delete(user);
    if (unclear) this.#isRetired = true;
    if ((this.#isRetired || !this.isShared) && this.#users.size === 0) this.end(unclear);
  }

  /** Like {@link EtcdLease.remove}, but the lease stays, for another entry. */
  free(user: LeaseUser): void {
    this.#users.delete(user);
  }

  /** Replaces the user `from` by `to`. Does nothing if `from` is not a user. */
  replace(from: LeaseUser, to: LeaseUser): void {
    if (this.#users.delete(from)) this.add(to);
  }

  /** Makes the lease take no further entries, and revokes it when it has no users. */
  retire(): void {
    this.#isRetired = true;
    if (this.#users.size === 0) this.end();
  }

  /**
   * Renews the lease and reads its entries. Tickets that call this at the same time share one renewal: the timeout of the first of
   * them applies. Sends no request if the last renewal has read the user's entry and is newer than `since`: resolves to that
   * renewal.
   * @param since the `sentAt` of the last renewal that the caller knows. Default: ignore the last renewal
   * @throws {NotFound} if the lease is gone
   */
  async renew(
    user: LeaseUser | undefined,
    options: RenewalOptions,
    since = Number.POSITIVE_INFINITY,
  ): Promise<LeaseRenewal> {
    const renewal = await this.#renewals.renew(user, options, this.#isOver ? Number.POSITIVE_INFINITY : since);
    if (user) this.#users.renewed(user);
    return renewal;
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
    else this.#pool.addRevocation(ended);
  }

  /** Waits for a grant under way, then revokes the lease. In the other order, the lease could stay until its TTL has passed. */
  async #endOnceGranted(): Promise<void> {
    await this.#granting?.catch(ignore);
    await this.#requests.leases.revokeUntil(this.id, Deadline.after(Math.max(this.#granted, this.ttl)));
  }

  #renewFor(signal: Source | undefined): Promise<LeaseRenewal> {
    return this.renew(undefined, { signal, timeout: this.#expiry.remaining / 1000 });
  }

  readonly #renewOnce = async (shared: SharedRenewal, limit: Deadline): Promise<LeaseRenewal> => {
    const since = now() - this.#granted * 1000;
    const users = this.#renewals.begin(shared, () => this.#users.renewedSince(since, this.id));
    const keys = Array.from(users, ({ key }) => key);
    const call = { signal: shared.stop, timeout: limit.remaining / 1000, attemptTimeout: hedgeRenewalAfter(this.ttl) };
    let renewal: LeaseRenewal | undefined;
    try {
      renewal = await this.#requests.leases.renew(this.id, keys, call);
      this.#granted = renewal.granted;
      this.#sentAt = Math.max(this.#sentAt, renewal.sentAt);
      this.#keptAliveIn = undefined;
      this.#strays.renewed(this.#requests, renewal);
      return renewal;
    } catch (error) {
      if (error instanceof NotFound) this.setGone();
      throw error;
    } finally {
      this.#renewals.end(shared, renewal);
    }
  };

  /** Keeps a free lease alive. There is no entry to read yet: see {@link EtcdLease.isConfirmedBy}. */
  async #keepAlive(signal: Source | undefined): Promise<void> {
    try {
      const call = { signal, attemptTimeout: hedgeRenewalAfter(this.ttl) };
      const renewal = await this.#requests.leases.renew(this.id, [], call);
      this.#granted = renewal.granted;
      this.#sentAt = renewal.sentAt;
      this.#keptAliveIn = renewal.raftTerm;
      this.#strays.renewed(this.#requests, renewal);
    } catch (error) {
      if (error instanceof NotFound) this.setGone();
      throw error;
    }
  }

  async #grant({ signal, ...call }: GatewayCall): Promise<void> {
    this.#granting ??= detached(() => this.#grantOnce(call));
    await (signal ? orAborted(this.#granting, signal) : this.#granting);
  }

  /** Several calls may wait for the same lease, so the signal of one call does not end the request. */
  async #grantOnce(call: GatewayCall): Promise<void> {
    try {
      const { granted, sentAt, clusterId, isRepeated } = await this.#pool.grant(this.id, this.ttl, call);
      this.#mayReturn = isRepeated;
      this.#granted = granted;
      this.#clusterId = clusterId;
      this.#sentAt = sentAt;
    } catch (error) {
      // The lease may have been created, or may be created later: revoke it.
      if (mayBeCarriedOut(error)) this.end();
      this.#isOver = true;
      throw error;
    }
  }
}
