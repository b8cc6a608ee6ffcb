import { detached } from '../../../base/async-context.ts';
import { ignore, orAborted, Scope } from '../../../base/cancellation.ts';
import { Deadline } from '../../../base/time.ts';
import type { RenewalOptions } from '../../../recipe/store.ts';
import type { LeaseRenewal } from '../../rpc/leases.ts';
import type { LeaseUser } from './lease-users.ts';

/** A renewal of a lease. Several tickets may wait for it. */
export class SharedRenewal {
  readonly renewal: Promise<LeaseRenewal>;
  readonly stop = new Scope();
  /** The users whose entries this renewal reads; undefined before it begins. */
  users: Set<LeaseUser> | undefined;
  #waiting = 0;

  constructor(renew: (shared: SharedRenewal) => Promise<LeaseRenewal>) {
    this.renewal = detached(() => renew(this));
  }

  /** Call this before waiting for the renewal. */
  join(): void {
    this.#waiting += 1;
  }

  /** Call this when the wait has ended. Stops the renewal if nobody else waits for it. */
  leave(): void {
    this.#waiting -= 1;
    if (this.#waiting === 0) this.stop.abort(new Error('nobody waits for this renewal'));
  }
}

/** Sends one renewal. Calls {@link SharedRenewals.begin} at once, and {@link SharedRenewals.end} when it is answered. */
type RenewOnce = (shared: SharedRenewal, limit: Deadline) => Promise<LeaseRenewal>;

/** The renewals of one lease: at most one is under way, and at most one waits for its end. */
export class SharedRenewals {
  readonly #renewOnce: RenewOnce;
  #current: SharedRenewal | undefined;
  /** The renewal that begins when the one under way has ended. */
  #next: SharedRenewal | undefined;
  #last: { readonly renewal: LeaseRenewal; readonly users: Set<LeaseUser> } | undefined;

  constructor(renewOnce: RenewOnce) {
    this.#renewOnce = renewOnce;
  }

  /** Resolves to a renewal that reads the user's entry: the last one, if it is newer than `since`, one under way, or a new one. */
  async renew(user: LeaseUser | undefined, { signal, timeout }: RenewalOptions, since: number): Promise<LeaseRenewal> {
    if (this.#last && user && this.#last.users.has(user) && this.#last.renewal.sentAt > since)
      return this.#last.renewal;
    const shared = this.#for(user, timeout);
    shared.join();
    try {
      return await (signal ? orAborted(shared.renewal, signal) : shared.renewal);
    } finally {
      shared.leave();
    }
  }

  /** Returns a renewal that reads the user's entry. Begins one if there is none. Its timeout, in seconds, applies only to a new one. */
  #for(user: LeaseUser | undefined, timeout: number): SharedRenewal {
    const present = ifUsable(this.#current);
    if (present && (!user || present.users?.has(user))) return present;
    const limit = Deadline.after(timeout);
    if (!present && !ifUsable(this.#next)) return new SharedRenewal((shared) => this.#renewOnce(shared, limit));
    // The renewal under way does not read this entry, which is newer. All such entries share the next renewal: each renewal reads
    // all entries, so one for each new entry would be too much work.
    this.#next = ifUsable(this.#next) ?? new SharedRenewal((shared) => this.#renewAfter(present, shared, limit));
    return this.#next;
  }

  /** Call this when the user's entry has been attached to the lease: renewals that began before have not read this entry. */
  entered(user: LeaseUser): void {
    this.#current?.users?.delete(user);
    this.#last?.users.delete(user);
  }

  /** Returns the users whose entries the renewal must read: those that `usersOf` returns. */
  begin(shared: SharedRenewal, usersOf: () => Set<LeaseUser>): Set<LeaseUser> {
    this.#current = shared;
    shared.users = usersOf();
    return shared.users;
  }

  /** @param renewal undefined: it has failed */
  end(shared: SharedRenewal, renewal: LeaseRenewal | undefined): void {
    if (this.#current === shared) this.#current = undefined;
    if (renewal && shared.users) this.#last = { renewal, users: shared.users };
  }

  async #renewAfter(earlier: SharedRenewal | undefined, shared: SharedRenewal, limit: Deadline): Promise<LeaseRenewal> {
    await earlier?.renewal.catch(ignore);
    if (this.#next === shared) this.#next = undefined;
    shared.stop.throwIfAborted();
    return this.#renewOnce(shared, limit);
  }
}

/** Returns the renewal, unless it was stopped because no call waits for it. */
const ifUsable = (shared: SharedRenewal | undefined): SharedRenewal | undefined =>
  shared?.stop.aborted ? undefined : shared;
