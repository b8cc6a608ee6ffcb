import type { PendingWork } from '../../base/pending-work.ts';
import { Deadline, now } from '../../base/time.ts';
import { EtcdClusterIdChanged, EtcdLockExpired, isNotCarriedOut } from '../../errors.ts';
import { noEntry } from '../../recipe/entries/lost.ts';
import { HEDGE_REMOVAL_AFTER, REMOVE_EVERY } from '../../recipe/entries/timing.ts';
import { isElsewhere, Settler, SettlersAtWork, type Unsettled } from '../../recipe/settler.ts';
import type { TicketOptions } from '../../recipe/store.ts';
import type { GatewayCall } from '../gateway/gateway.ts';
import {
  duty,
  type EntryEvent,
  type EntryState,
  INITIAL,
  isFreed,
  owesNothing,
  ownIn,
  step,
  type V3OwnEntry,
} from './entry.ts';
import { type EntryKey, singleUseKey } from './entry-keys.ts';
import type { EtcdLease } from './leases/lease.ts';
import type { LeaseUser } from './leases/lease-users.ts';
import { explained } from './loss-reason.ts';
import type { Session } from './session.ts';

const atWork = new SettlersAtWork<TicketEntry>();

/** The entry of one ticket, before, while and after it exists: holds its state, and uses leases and does its duty accordingly. */
export class TicketEntry implements LeaseUser, Unsettled {
  readonly session: Session;
  readonly path: string;
  readonly value: string;
  /** The key that follows from the value. */
  readonly id: string;
  readonly retryEvery = REMOVE_EVERY;
  readonly settler = new Settler<TicketEntry>(this, atWork);
  /** Whether nobody else has or looks for an entry with this value, so that the client may choose its key. */
  readonly #isSingleUse: boolean;
  /** undefined: the next entry takes one of the client's keys. */
  #key: EntryKey | undefined;
  #state: EntryState = INITIAL;

  constructor(session: Session, path: string, value: string, { isSingleUse = false, key }: TicketOptions) {
    this.session = session;
    this.path = path;
    this.value = value;
    this.#isSingleUse = isSingleUse;
    const own = singleUseKey(path, value);
    this.id = own.key;
    if (key !== undefined) this.#key = { key, isUsedAgain: false };
    else if (!isSingleUse) this.#key = own;
  }

  get key(): string {
    return this.#key?.key ?? this.id;
  }

  get isKeyUsedAgain(): boolean {
    return this.#key?.isUsedAgain ?? false;
  }

  /** Call this before an entry is created. */
  takeKey(): void {
    this.#key ??= this.session.keys.take(this.path, this.value);
  }

  /**
   * Takes another key. Call this if the key has the entry of another ticket: a proxy may have carried out a copy of an earlier append.
   * Returns false if no other ticket can have used the key, or if a late append of this one may still create it.
   */
  changeKey(): boolean {
    if (!this.isKeyUsedAgain || !owesNothing(this.#state)) return false;
    this.#key = undefined;
    this.takeKey();
    return true;
  }

  /** Call this when etcd has removed the own entry. Another entry may then have its key, unless a late append could create it again. */
  releaseKey(): void {
    if (!this.#key?.isUsedAgain || !owesNothing(this.#state)) return;
    this.session.keys.release(this.path, this.#key);
    this.#key = undefined;
  }

  get state(): EntryState {
    return this.#state;
  }

  get own(): V3OwnEntry | undefined {
    return ownIn(this.#state);
  }

  get clusterId(): string | undefined {
    return this.#state.last?.clusterId ?? this.session.clusterId;
  }

  get pending(): PendingWork {
    return this.session.pending;
  }

  /** @throws {EtcdLockExpired} if there is no own entry */
  required(): V3OwnEntry {
    if (this.own) return this.own;
    throw noEntry(this.path, this.value);
  }

  /** Sets the state after the event. Stops using the leases that the new state does not need. */
  apply(event: EntryEvent): void {
    const before = this.#state;
    this.#state = step(before, event);
    const lease = ownIn(before)?.lease;
    if (lease && isFreed(before, event)) this.session.leases.free(lease, this);
    else if (lease !== this.own?.lease) lease?.remove(this, !this.own && before.debts.leases.has(lease));
    for (const one of before.debts.leases) if (!this.#state.debts.leases.has(one)) this.stopUsing(one);
    // No later entry may be kept alive together with what a late append may still create.
    if (event.is === 'removed' || (event.is === 'leftToExpire' && before.debts.unanswered > 0))
      for (const one of before.debts.leases) one?.remove(this, true);
  }

  /** Stops using the lease, unless the own entry is attached to it or a late request may still use it. */
  stopUsing(lease: EtcdLease | undefined): void {
    if (this.own?.lease !== lease && !this.#state.debts.leases.has(lease)) lease?.remove(this);
  }

  /** Returns the error. If it reports a loss, records that the key may now belong to another client. */
  noted<E>(error: E): E {
    if (error instanceof EtcdLockExpired || error instanceof EtcdClusterIdChanged) this.apply({ is: 'doubted' });
    return error;
  }

  explained<E>(own: V3OwnEntry, error: E): Promise<E | EtcdLockExpired> {
    return explained(this.session.requests, { own, lease: own.lease?.id }, error);
  }

  onExpired(lease: string): void {
    // The own entry may have another lease: one that only an unanswered append has used does not concern it.
    if (this.own?.lease?.id !== lease || this.settler.isAtWork) return;
    this.apply({ is: 'leaseExpired' });
    if (!this.#state.isInCall) this.settler.start();
  }

  /** Stops the background removal, and takes over those of earlier tickets for the same key. */
  stopSettling(): Promise<void> {
    if (this.settler.isAtWork) this.apply({ is: 'interrupted' });
    return this.settler.stop((earlier) => this.#inherit(earlier));
  }

  #inherit(earlier: TicketEntry): void {
    if (isElsewhere(earlier, this)) {
      // The entries and leases of a cluster that was replaced are gone.
      earlier.apply({ is: 'takenOver' });
      return;
    }
    const { debts } = earlier.#state;
    for (const lease of new Set([earlier.own?.lease, ...debts.leases])) lease?.replace(earlier, this);
    // Not by apply(): this ticket now uses these leases, so none of them is let go.
    this.#state = step(this.#state, { is: 'inherited', from: earlier.#state });
    earlier.#state = step(earlier.#state, { is: 'takenOver' });
  }

  hasDuty(isClosing: boolean): boolean {
    const due = duty(this.#state, now());
    return due !== undefined && !(due.is === 'search' && isClosing);
  }

  /** Leaves the own entry to expire, or removes it and what late appends have created. */
  async settle(options: GatewayCall): Promise<void> {
    const began = now();
    const due = duty(this.#state, began);
    if (!due) return;
    if (due.is === 'expire') return this.#leaveToExpire(due.own, due.until, options);
    this.apply({ is: 'removing' });
    const wasThere = await this.#remove(due.own, options);
    this.apply({ is: 'removed', began, at: now(), wasThere });
    this.releaseKey();
  }

  /** Removes the key, if it still has the entry of this ticket. Resolves to whether that entry was still there. */
  async #remove(own: V3OwnEntry | undefined, options: GatewayCall): Promise<boolean> {
    const { key, value } = this;
    const { entries } = this.session.requests;
    const { isDoubtful, debts } = this.#state;
    const call = { attemptTimeout: HEDGE_REMOVAL_AFTER, ...options };
    // No other entry ever has this key, so delete it without a comparison.
    const servesOnce = this.#isSingleUse && !this.isKeyUsedAgain;
    if (servesOnce && !isDoubtful && own && !mayHaveExpired(own)) {
      await entries.delete(key, call);
      return true;
    }
    // A request that is carried out late must not remove a later entry with the same value, or this one after it was written again.
    let last: Pick<V3OwnEntry, 'rank' | 'modified'> | undefined = own;
    for (let isRemoved = false; !isRemoved; last = undefined) {
      if (!last) {
        const { own: present, clusterId } = await entries.get(key, call);
        // In its own cluster, the entry may still be there.
        if (own && clusterId !== own.clusterId) this.apply({ is: 'doubted' });
        if (present?.value !== value || (own && present.rank !== own.rank) || present.rank === debts.kept) return false;
        last = present;
      }
      ({ isRemoved } = await entries.remove(key, { value, rank: last.rank, modified: last.modified }, call));
    }
    return true;
  }

  /** Attaches the own entry to a lease that nobody renews, so that the entry expires at the deadline or soon after. */
  async #leaveToExpire({ rank, modified }: V3OwnEntry, until: Deadline, options: GatewayCall): Promise<void> {
    const { leases, requests } = this.session;
    const lease = leases.fresh(Math.max(1, Math.ceil(until.remaining / 1000)));
    // Until then, the entry is certainly not attached to this lease. After a failure, the next try uses another one.
    await lease.prepare(options).catch((error: unknown) => {
      lease.retire();
      throw error;
    });
    const target = { value: this.value, rank, modified, lease: lease.id };
    const { moved } = await requests.entries.move(this.key, target, options).catch((error: unknown) => {
      if (isNotCarriedOut(error)) lease.retire();
      throw error;
    });
    if (moved === undefined) lease.retire();
    this.apply({ is: 'leftToExpire', at: now() });
  }

  expiry(): () => boolean {
    const { own } = this;
    const leases = [...this.#state.debts.leases, ...(own ? [own.lease] : [])];
    // Without a lease, or with an unknown one, the entry may stay for ever.
    const expired = leases.includes(undefined) ? Deadline.never : Deadline.after(own?.granted ?? 0);
    return () => expired.passed && !leases.some((lease) => lease?.isAlive);
  }
}

/** Whether the entry may have expired, so that its key may now belong to another client. */
const mayHaveExpired = ({ sentAt, granted }: V3OwnEntry): boolean =>
  granted !== null && new Deadline(sentAt + granted * 1000).passed;
