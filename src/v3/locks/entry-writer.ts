import type { Source } from '../../base/cancellation.ts';
import { now } from '../../base/time.ts';
import {
  EtcdClusterIdChanged,
  EtcdConnectionFailed,
  EtcdLockExpired,
  EtcdValueError,
  isNotCarriedOut,
} from '../../errors.ts';
import { claimOf, isAlone } from '../../recipe/entries/entry-value.ts';
import { leaseEnded, lost } from '../../recipe/entries/lost.ts';
import type { OwnEntry, RenewalOptions, Terms } from '../../recipe/store.ts';
import { NotFound } from '../gateway/errors.ts';
import type { GatewayCall } from '../gateway/gateway.ts';
import type { Header } from '../gateway/messages.ts';
import type { AppendResult } from '../rpc/append.ts';
import type { V3Entry } from '../rpc/entry.ts';
import { isReplaceable, type V3OwnEntry } from './entry.ts';
import type { EtcdLease } from './leases/lease.ts';
import { checkPresent } from './loss-reason.ts';
import type { V3Standings } from './standings.ts';
import type { TicketEntry } from './ticket-entry.ts';

/** Creates, renews and moves the entry of one ticket. */
export class EntryWriter {
  readonly #entry: TicketEntry;
  readonly #standings: V3Standings;

  constructor(entry: TicketEntry, standings: V3Standings) {
    this.#entry = entry;
    this.#standings = standings;
  }

  /** Returns a lease that is ready for the own entry. The entry becomes its user at once, so that the lease is not revoked. */
  async leaseFor(
    { ttl, keepAlive }: Terms,
    signal: Source | undefined,
    since?: number,
  ): Promise<EtcdLease | undefined> {
    if (ttl === null) return undefined;
    for (;;) {
      const { leases } = this.#entry.session;
      const lease = keepAlive ? leases.shared(ttl) : leases.single(ttl);
      lease.add(this.#entry);
      try {
        await lease.prepare({ signal }, since);
        if (!lease.isOver) return lease;
        this.#entry.stopUsing(lease);
      } catch (error) {
        this.#entry.stopUsing(lease);
        if (!(error instanceof NotFound)) throw error;
      }
    }
  }

  /**
   * Appends the entry. If the key exists already with the ticket's value, takes over that entry instead.
   * @param other the entry to remove in the same step; ignored unless it is replaceable
   */
  async append(
    lease: EtcdLease | undefined,
    limits: GatewayCall,
    other: TicketEntry | undefined,
  ): Promise<OwnEntry | undefined> {
    const entry = this.#entry;
    const { key, value, session } = entry;
    const old = other && isReplaceable(other.state) ? other : undefined;
    let appended: AppendResult;
    try {
      appended = await session.requests.entries.append(key, {
        value,
        lease: lease?.id,
        // The entry may hold the lock together with the entries before it, so the whole queue is needed.
        whole: !isAlone(claimOf(value)),
        onSent: () => entry.apply({ is: 'appendSent' }),
        onAnswered: () => entry.apply({ is: 'appendAnswered' }),
        leases: new Set([...entry.state.debts.leases, lease].map((one) => one?.id)),
        replacing: old?.own,
        ...limits,
      });
    } catch (error) {
      entry.apply({ is: 'appendEnded', lease });
      if (error instanceof NotFound) lease?.setGone();
      entry.stopUsing(lease);
      throw error;
    }
    const { own, clusterId, replaced, existed } = appended;
    old?.apply({ is: replaced ? 'forgotten' : 'doubted' });
    if (replaced) old?.releaseKey();
    entry.apply({ is: 'appendEnded', lease });
    if (own.value !== value) {
      entry.apply({ is: 'enterAnswered' });
      if (entry.changeKey()) return this.append(lease, limits, other);
      entry.stopUsing(lease);
      entry.apply({ is: 'doubted' });
      throw new EtcdValueError(`${key} exists already with another value: another program uses this key`);
    }
    // An entry that existed is written again: a late request of its creator must not remove it, and its token must grow.
    // Leave its lease only after that.
    if (!existed) this.#standings.appended(appended);
    const entered = existed
      ? await this.#attachTo(this.#found(own, clusterId), lease, limits.signal)
      : this.#written({ key, value, rank: own.rank, clusterId }, own.modified, lease, appended);
    entry.apply({ is: 'enterAnswered' });
    return entered;
  }

  /** Renews the own entry with these terms. Resolves to undefined if it is gone. */
  async reenter(own: V3OwnEntry, terms: Terms, signal: Source | undefined): Promise<OwnEntry | undefined> {
    const entry = this.#entry;
    // An answer of another cluster came since the last write.
    if (own.clusterId !== entry.session.clusterId) {
      entry.apply({ is: 'forgotten' });
      return undefined;
    }
    // Otherwise a renewal by another user would not read this entry if its TTL has just passed.
    own.lease?.add(entry);
    try {
      const fits = own.lease?.ttl === terms.ttl && (terms.keepAlive || !own.lease.isShared);
      // The caller counts the TTL from now on.
      if (fits && !entry.state.isContested)
        return await this.renew(own, { signal, timeout: Math.max(1, own.granted ?? 1) });
      const entered = await this.#attachTo(own, await this.leaseFor(terms, signal, now()), signal);
      entry.apply({ is: 'enterAnswered' });
      return entered;
    } catch (error) {
      if (!(error instanceof EtcdLockExpired)) throw error;
      entry.apply({ is: 'forgotten' });
      return undefined;
    }
  }

  /** @param since a renewal that was sent after this time, for another entry of the lease, is enough; undefined: always sends one */
  async renew(own: V3OwnEntry, options: RenewalOptions, since?: number): Promise<OwnEntry> {
    if (!own.lease) return own;
    const entry = this.#entry;
    try {
      const renewal = await own.lease.renew(entry, options, since);
      const { clusterId, sentAt, granted, member } = renewal;
      const present = renewal.entries.get(entry.key);
      checkPresent(own, { clusterId, own: present });
      if (present?.lease !== own.lease.id)
        throw lost(own, own.clusterId, 'its key was written again, with another lease');
      if (options.signal?.aborted) throw options.signal.reason;
      const renewed = { ...own, sentAt, granted, member };
      entry.apply({ is: 'renewed', own: renewed });
      return renewed;
    } catch (error) {
      if (!(error instanceof NotFound)) throw await entry.explained(own, entry.noted(error));
      // Another cluster also reports that the lease does not exist.
      const { clusterId } = entry.session;
      throw entry.noted(clusterId === own.clusterId ? leaseEnded(own) : lost(own, clusterId, ''));
    }
  }

  /** Attaches the own entry to another lease. Resolves to undefined if the entry is gone. */
  async #attachTo(
    own: V3OwnEntry,
    lease: EtcdLease | undefined,
    signal: Source | undefined,
  ): Promise<V3OwnEntry | undefined> {
    const entry = this.#entry;
    try {
      for (let { modified } = own; ; ) {
        const target = { value: entry.value, rank: own.rank, modified, lease: lease?.id };
        const answer = await entry.session.requests.entries.move(entry.key, target, { signal });
        const { moved, present, clusterId } = answer;
        if (clusterId !== own.clusterId) throw lost(own, clusterId, '');
        if (moved !== undefined) return this.#written(own, moved, lease, answer);
        if (!present || !this.#hasMoved(own, present)) {
          entry.apply({ is: 'forgotten' });
          return undefined;
        }
        ({ modified } = present);
      }
    } catch (error) {
      if (error instanceof NotFound) lease?.setGone();
      // The entry may be attached to this lease, now or later.
      if (!isNotCarriedOut(error)) entry.apply({ is: 'moveLost', lease });
      throw error;
    } finally {
      entry.stopUsing(lease);
    }
  }

  /** Whether an earlier request of this ticket, whose answer was lost, has moved the own entry. */
  #hasMoved(own: V3OwnEntry, { rank, value, lease }: V3Entry): boolean {
    const { isContested, debts } = this.#entry.state;
    const isSame = rank === own.rank && value === own.value;
    return isSame && isContested && [...debts.leases].some((unclear) => unclear?.id === lease);
  }

  #found(own: V3Entry, clusterId: string | undefined): V3OwnEntry {
    this.#entry.apply({ is: 'found', own, clusterId });
    return this.#entry.required();
  }

  /**
   * Records that the own entry was written, attached to this lease.
   * @param answer the answer to that write
   * @throws {EtcdClusterIdChanged} if another cluster has created the lease: its renewals would not keep the entry
   * @throws {EtcdConnectionFailed} if the lease may end early: the next try to enter renews the entry
   */
  #written(
    written: Pick<OwnEntry, 'key' | 'value' | 'rank' | 'clusterId'>,
    modified: bigint,
    lease: EtcdLease | undefined,
    answer: Header,
  ): V3OwnEntry {
    const { sentAt, granted } = lease ?? { sentAt: Number.POSITIVE_INFINITY, granted: null };
    const own = { ...written, sentAt, granted, modified, lease };
    this.#entry.apply({ is: 'written', own });
    lease?.entered(this.#entry);
    if (!lease) return own;
    if (lease.clusterId === own.clusterId) {
      if (lease.isConfirmedBy(answer)) return own;
      throw new EtcdConnectionFailed(`the leader changed before ${own.key} was written: its lease may end early`);
    }
    lease.setGone();
    const where = `in cluster ${own.clusterId}, but its lease in cluster ${lease.clusterId}`;
    throw this.#entry.noted(new EtcdClusterIdChanged(`${own.key} was written ${where}`));
  }
}
