import { detached } from '../../base/async-context.ts';
import { Scope, type Source } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { failureOf, keepTrying, type Running, stopped } from '../../base/pending-work.ts';
import { Deadline, now } from '../../base/time.ts';
import { EtcdClusterIdChanged, EtcdException, EtcdLockExpired, EtcdValueError, mayPass } from '../../errors.ts';
import { claimOf, isAlone } from '../../recipe/entries/entry-value.ts';
import { leaseEnded, lost, noEntry } from '../../recipe/entries/lost.ts';
import { HEDGE_REMOVAL_AFTER, REMOVE_EVERY, SEARCH_APPEND_FOR } from '../../recipe/entries/timing.ts';
import type {
  EnterOptions,
  Entry,
  FencingTokens,
  LeaveOptions,
  OwnEntry,
  RenewalOptions,
  Standing,
  StandingOptions,
  StoreCall,
  Ticket,
  TicketOptions,
} from '../../recipe/store.ts';
import { NotFound } from '../gateway/errors.ts';
import type { GatewayCall } from '../gateway/gateway.ts';
import type { AppendResult } from '../rpc/append.ts';
import type { V3Entry } from '../rpc/entry.ts';
import { idOf } from '../rpc/keys.ts';
import type { EtcdLease } from './lease.ts';
import type { LeaseUser } from './lease-users.ts';
import { checkPresent, explained, isUnexplained, whyLost } from './loss-reason.ts';
import type { Session } from './session.ts';
import { V3Standings } from './standings.ts';
import { enterTimeout } from './timing.ts';
import { Unsettled } from './unsettled.ts';

const debug = createDebug('lock');

/** The own entry of a ticket, with its lease. */
interface V3OwnEntry extends OwnEntry {
  /** The revision of its last write. */
  readonly modified: bigint;
  /** The lease that the entry is attached to; undefined if it has none, or one that this ticket does not know. */
  readonly lease: EtcdLease | undefined;
}

/** TTL and renewal of an entry. */
interface Terms {
  /** Seconds; null: it never expires. */
  readonly ttl: number | null;
  readonly keepAlive: boolean;
}

/** Maximum number of leases that one try to enter the queue uses. */
const MOST_LEASES = 3;

const unsettled = new Unsettled<V3Ticket>();

/** A {@link Ticket} on etcd v3. Its value determines its key, so it has at most one entry, even if answers are lost. */
export class V3Ticket implements Ticket, LeaseUser {
  readonly path: string;
  readonly value: string;
  readonly key: string;
  readonly #session: Session;
  readonly #standings: V3Standings;
  readonly #isSingleUse: boolean;
  #own: V3OwnEntry | undefined;
  #last: OwnEntry | undefined;
  /** The leases of appends that may still be carried out; undefined: an append without a lease. */
  readonly #unclear = new Set<EtcdLease | undefined>();
  /**
   * Deadline of the search for the key after its removal: a late append may create the key again. The search ends when a removal that
   * began after the deadline has succeeded.
   */
  #searchUntil: Deadline | undefined;
  /** Appends that were sent and not answered. */
  readonly #unanswered = { count: 0 };
  /** Whether an answer has shown that the own entry has changed or is gone: its key may now belong to another client. */
  #isDoubtful = false;
  /** Whether the queue may have an entry of this ticket that has been given up and must be removed. */
  #isLeft = false;
  /** When the own entry is to expire; undefined once it is attached to a lease that expires then. */
  #expiry: Deadline | undefined;
  #settling: Running | undefined;
  /** Whether a call is entering or leaving the queue: it then takes care of an expired entry itself. */
  #isEnteringOrLeaving = false;
  /**
   * Whether an earlier request may still be carried out that would move or remove the own entry, as it was last written. The entry
   * must then be written again before it counts as renewed.
   */
  #isContested = false;
  /** Rank of an entry that was left to expire: the search for late appends must not remove it. */
  #kept: bigint | undefined;

  constructor(session: Session, path: string, value: string, { isSingleUse = false }: TicketOptions = {}) {
    this.#session = session;
    this.path = path;
    this.value = value;
    this.key = `${path}/${idOf(value)}`;
    this.#isSingleUse = isSingleUse;
    this.#standings = new V3Standings(session.requests, path);
  }

  get clusterId(): string | undefined {
    return this.#last?.clusterId ?? this.#session.clusterId;
  }

  get last(): OwnEntry | undefined {
    return this.#last;
  }

  get fencingTokens(): FencingTokens | undefined {
    const { token } = this.#standings;
    return token === undefined ? undefined : { v3: token };
  }

  /** Whether the removal of the own entry is the only work left. */
  get isReplaceable(): boolean {
    return (
      this.#own !== undefined && !this.#isLeft && !this.#expiry && this.#unanswered.count === 0 && !this.#mayComeBack
    );
  }

  async enter(ttl: number | null, options: EnterOptions): Promise<OwnEntry | undefined> {
    this.#isEnteringOrLeaving = true;
    try {
      return await this.#enter(ttl, options);
    } finally {
      this.#isEnteringOrLeaving = false;
    }
  }

  async #enter(
    ttl: number | null,
    { signal, failed, keepAlive, replacing }: EnterOptions,
  ): Promise<OwnEntry | undefined> {
    await this.#stopSettling();
    // Finish the removal first: the next entry must have a greater token.
    if (this.#isLeft || this.#expiry) await this.#settle({ signal });
    this.#standings.appended(undefined);
    for (let tries = 1; ; tries += 1) {
      try {
        if (this.#own) return await this.#reenter(this.#own, { ttl, keepAlive }, signal);
        const lease = await this.#leaseFor({ ttl, keepAlive }, signal);
        return await this.#append(lease, { signal, attemptTimeout: enterTimeout(failed) }, replacing);
      } catch (error) {
        // The lease has ended since it was last renewed.
        if (!(error instanceof NotFound)) throw error;
        if (tries === MOST_LEASES) throw leasesGone(error);
      }
    }
  }

  async find({ signal }: StoreCall = {}): Promise<OwnEntry | undefined> {
    await this.#stopSettling();
    const { own, clusterId } = await this.#session.requests.entries
      .get(this.key, { signal })
      .catch((error: unknown) => {
        // Do not begin background removals only because of a late append: the search for it would remove the own entry.
        if (this.#isLeft || this.#expiry || !this.#own) this.#settleInBackground();
        throw error;
      });
    if (own?.value !== this.value) {
      this.#settleInBackground();
      return undefined;
    }
    this.#isLeft = false;
    this.#expiry = undefined;
    if (own.rank === this.#own?.rank) return this.#own;
    this.#own?.lease?.remove(this);
    return this.#found(own, clusterId);
  }

  async standing(options: StandingOptions): Promise<Standing> {
    const own = this.#required();
    try {
      return await this.#standings.read(own, options);
    } catch (error) {
      throw await this.#explained(own, this.#noted(error));
    }
  }

  async changed(_: Entry, { signal }: StoreCall): Promise<boolean> {
    return this.#standings.changed(this.#required().granted, signal);
  }

  async renew(options: RenewalOptions): Promise<OwnEntry> {
    const own = this.#required();
    return this.#renew(own, options, own.sentAt);
  }

  /** @param since a renewal that was sent after this time, for another entry of the lease, is enough; undefined: always sends one */
  async #renew(own: V3OwnEntry, options: RenewalOptions, since?: number): Promise<OwnEntry> {
    if (!own.lease) return own;
    try {
      const renewal = await own.lease.renew(this, options, since);
      const { clusterId } = renewal;
      const present = renewal.entries.get(this.key);
      checkPresent(own, { clusterId, own: present });
      if (present?.lease !== own.lease.id) throw this.#lost(own, 'its key was written again, with another lease');
      if (options.signal?.aborted) throw options.signal.reason;
      const { sentAt, granted, member } = renewal;
      return this.#set({ ...own, sentAt, granted, member }, own);
    } catch (error) {
      if (!(error instanceof NotFound)) throw await this.#explained(own, this.#noted(error));
      // Another cluster also reports that the lease does not exist.
      const { clusterId } = this.#session;
      throw this.#noted(clusterId === own.clusterId ? leaseEnded(own) : lost(own, clusterId, ''));
    }
  }

  onExpired(lease: string): void {
    // The own entry may have another lease: one that only an unanswered append has used does not concern it.
    if (this.#isEnteringOrLeaving || this.#own?.lease?.id !== lease || unsettled.has(this)) return;
    this.#isLeft ||= this.#expiry === undefined;
    this.#settleInBackground();
  }

  async verify(): Promise<Error | undefined> {
    const own = this.#required();
    try {
      const why = whyLost(own, await this.#session.requests.entries.get(this.key, {}));
      return why && (await this.#explained(own, this.#noted(why)));
    } catch (error) {
      if (error instanceof EtcdClusterIdChanged) return this.#noted(error);
      throw error;
    }
  }

  watch(onLost: (why: Error) => void): () => void {
    const own = this.#required();
    let isWatched = true;
    const report = (why: Error): void => {
      if (isWatched) onLost(why);
    };
    const onGone = (why: Error): void => {
      this.#noted(why);
      if (isUnexplained(leasedEntry(own), why)) void this.#explained(own, why).then(report);
      else report(why);
    };
    const stop = this.#session.losses.watch({ own, onLost: onGone });
    return () => {
      isWatched = false;
      stop();
    };
  }

  async leave({ signal, until }: LeaveOptions = {}): Promise<void> {
    this.#isEnteringOrLeaving = true;
    try {
      await this.#stopSettling();
      this.#standings.appended(undefined);
      // The last call decides, also after an earlier one that has failed.
      this.#expiry = this.#own && !until?.passed ? until : undefined;
      if (this.#expiry) this.#isLeft = false;
      else this.#isLeft ||= this.#own !== undefined || this.#unanswered.count > 0;
      await this.#settle({ signal, background: this.#session.pending.closing.aborted });
    } finally {
      this.#isEnteringOrLeaving = false;
      this.#settleInBackground();
    }
  }

  /** Returns a lease that is ready for the own entry. This ticket becomes its user at once, so that the lease is not revoked. */
  async #leaseFor(
    { ttl, keepAlive }: Terms,
    signal: Source | undefined,
    since?: number,
  ): Promise<EtcdLease | undefined> {
    if (ttl === null) return undefined;
    for (;;) {
      const { leases } = this.#session;
      const lease = keepAlive ? leases.shared(ttl) : leases.single(ttl);
      lease.add(this);
      try {
        await lease.prepare({ signal }, since);
        if (!lease.isOver) return lease;
        this.#quit(lease);
      } catch (error) {
        this.#quit(lease);
        if (!(error instanceof NotFound)) throw error;
      }
    }
  }

  /** Stops being a user of the lease, unless the own entry is attached to it or a late append may still create one with it. */
  #quit(lease: EtcdLease | undefined): void {
    if (this.#own?.lease !== lease && !this.#unclear.has(lease)) lease?.remove(this);
  }

  async #append(
    lease: EtcdLease | undefined,
    limits: GatewayCall,
    other: Ticket | undefined,
  ): Promise<OwnEntry | undefined> {
    const old = other instanceof V3Ticket && other.isReplaceable ? other : undefined;
    let appended: AppendResult;
    try {
      // The entry may hold the lock together with the entries before it, so the whole queue is needed.
      const whole = !isAlone(claimOf(this.value));
      const own = {
        value: this.value,
        lease: lease?.id,
        whole,
        unanswered: this.#unanswered,
        leases: new Set([...this.#unclear, lease].map((one) => one?.id)),
        replacing: old ? old.#own : undefined,
      };
      appended = await this.#session.requests.entries.append(this.key, { ...own, ...limits });
    } catch (error) {
      if (this.#unanswered.count > 0) this.#unclear.add(lease);
      if (error instanceof NotFound) lease?.setGone();
      this.#quit(lease);
      throw error;
    }
    const { own, clusterId, replaced } = appended;
    if (old && replaced) old.#forget();
    else if (old) old.#isDoubtful = true;
    if (this.#unanswered.count > 0) this.#unclear.add(lease);
    if (own.value !== this.value) {
      this.#quitAnswered();
      this.#quit(lease);
      this.#isDoubtful = true;
      throw new EtcdValueError(`${this.key} exists already with another value: another program uses this key`);
    }
    this.#isLeft = false;
    // An entry that existed is written again: a late request of its creator must not remove it, and its token must grow.
    // Leave its lease only after that.
    if (!appended.existed) this.#standings.appended(appended);
    const entered = appended.existed
      ? await this.#attachTo(this.#found(own, clusterId), lease, limits.signal)
      : this.#enters({ ...ownFields(own), clusterId }, own.modified, lease);
    this.#quitAnswered();
    return entered;
  }

  /** Stops being a user of the leases of appends with an unknown outcome, once none of them can be carried out any more. */
  #quitAnswered(): void {
    if (this.#unanswered.count > 0 || this.#isSearching) return;
    const leases = [...this.#unclear];
    this.#unclear.clear();
    for (const lease of leases) this.#quit(lease);
  }

  /** Renews the own entry with these terms. Resolves to undefined if it is gone. */
  async #reenter(own: V3OwnEntry, terms: Terms, signal: Source | undefined): Promise<OwnEntry | undefined> {
    // An answer of another cluster came since the last write.
    if (own.clusterId !== this.#session.clusterId) {
      this.#forget();
      return undefined;
    }
    // Otherwise a renewal by another user would not read this entry if its TTL has just passed.
    own.lease?.add(this);
    try {
      const fits = own.lease?.ttl === terms.ttl && (terms.keepAlive || !own.lease.isShared);
      // The caller counts the TTL from now on.
      if (fits && !this.#isContested) return await this.#renew(own, { signal, timeout: Math.max(1, own.granted ?? 1) });
      const entered = await this.#attachTo(own, await this.#leaseFor(terms, signal, now()), signal);
      this.#quitAnswered();
      return entered;
    } catch (error) {
      if (!(error instanceof EtcdLockExpired)) throw error;
      this.#forget();
      return undefined;
    }
  }

  /** Attaches the own entry to another lease. Resolves to undefined if the entry is gone. */
  async #attachTo(
    own: V3OwnEntry,
    lease: EtcdLease | undefined,
    signal: Source | undefined,
  ): Promise<V3OwnEntry | undefined> {
    try {
      for (let { modified } = own; ; ) {
        const target = { value: this.value, rank: own.rank, modified, lease: lease?.id };
        const { moved, present, clusterId } = await this.#session.requests.entries.move(this.key, target, { signal });
        if (clusterId !== own.clusterId) throw lost(own, clusterId, '');
        if (moved !== undefined) {
          if (own.lease !== lease) own.lease?.remove(this);
          return this.#enters(own, moved, lease);
        }
        if (!present || !this.#hasMoved(own, present)) {
          this.#forget();
          return undefined;
        }
        ({ modified } = present);
      }
    } catch (error) {
      if (error instanceof NotFound) lease?.setGone();
      if (!(error instanceof EtcdException) || error.outcomeUnknown) {
        // The entry may be attached to this lease, now or later.
        this.#unclear.add(lease);
        this.#isContested = true;
      }
      throw error;
    } finally {
      this.#quit(lease);
    }
  }

  /** Whether an earlier request of this ticket, whose answer was lost, has moved the own entry. */
  #hasMoved(own: V3OwnEntry, { rank, value, lease }: V3Entry): boolean {
    const isSame = rank === own.rank && value === this.value;
    return isSame && this.#isContested && [...this.#unclear].some((unclear) => unclear?.id === lease);
  }

  /**
   * Records that the own entry was written, attached to this lease.
   * @throws {EtcdClusterIdChanged} if another cluster has created the lease: its renewals would not keep the entry
   */
  #enters(
    entry: Pick<OwnEntry, 'key' | 'value' | 'rank' | 'clusterId'>,
    modified: bigint,
    lease: EtcdLease | undefined,
  ): V3OwnEntry {
    lease?.entered(this);
    this.#isContested = false;
    const { sentAt, granted } = lease ?? { sentAt: Number.POSITIVE_INFINITY, granted: null };
    const own = this.#set({ ...entry, sentAt, granted }, { modified, lease });
    if (!lease || lease.clusterId === own.clusterId) return own;
    lease.setGone();
    const where = `in cluster ${own.clusterId}, but its lease in cluster ${lease.clusterId}`;
    throw this.#noted(new EtcdClusterIdChanged(`${this.key} was written ${where}`));
  }

  /** Takes over an entry found in the queue as the own entry. Whether it has a lease of this ticket is not known. */
  #found(own: V3Entry, clusterId: string | undefined): V3OwnEntry {
    const unknown = { granted: null, sentAt: Number.NEGATIVE_INFINITY };
    return this.#set({ ...ownFields(own), clusterId, ...unknown }, { modified: own.modified, lease: undefined });
  }

  /** Returns the error. If it reports a loss, records that the key may now belong to another client. */
  #noted<E>(error: E): E {
    if (error instanceof EtcdLockExpired || error instanceof EtcdClusterIdChanged) this.#isDoubtful = true;
    return error;
  }

  #explained<E>(own: V3OwnEntry, error: E): Promise<E | EtcdLockExpired> {
    return explained(this.#session.requests, leasedEntry(own), error);
  }

  #lost(own: OwnEntry, why: string): Error {
    return lost(own, own.clusterId, why);
  }

  #required(): V3OwnEntry {
    if (this.#own) return this.#own;
    throw noEntry(this.path, this.value);
  }

  #set(entry: OwnEntry, { modified, lease }: Pick<V3OwnEntry, 'modified' | 'lease'>): V3OwnEntry {
    const { key, value, rank, clusterId, granted, sentAt, member } = entry;
    this.#last = { key, value, rank, clusterId, granted, sentAt, member };
    this.#own = { ...this.#last, modified, lease };
    return this.#own;
  }

  /** Forgets the own entry: it is gone, or is left to expire. */
  #forget(): void {
    const lease = this.#own?.lease;
    lease?.remove(this, this.#unclear.has(lease));
    this.#own = undefined;
    this.#standings.appended(undefined);
  }

  /** Leaves the own entry to expire, or removes it and what late appends have created. */
  async #settle(options: GatewayCall): Promise<void> {
    const own = this.#own;
    if (this.#expiry && own) {
      if (!this.#expiry.passed) return this.#expireAt(this.#expiry, own, options);
      this.#isLeft = true;
    }
    this.#expiry = undefined;
    if (!this.#isLeft && !this.#mayComeBack) return;
    const isLast = this.#searchUntil?.passed;
    await this.#removeKey(own, options);
    this.#isLeft = false;
    if (isLast) this.#searchUntil = undefined;
    if (this.#unanswered.count > 0) this.#searchUntil = Deadline.after(SEARCH_APPEND_FOR);
    this.#unanswered.count = 0;
    this.#own = undefined;
    this.#isContested = false;
    for (const lease of new Set([own?.lease, ...this.#unclear])) lease?.remove(this, this.#unclear.has(lease));
  }

  /** Removes the key, if it still has the entry of this ticket. */
  async #removeKey(own: V3OwnEntry | undefined, options: GatewayCall): Promise<void> {
    const { entries } = this.#session.requests;
    const call = { attemptTimeout: HEDGE_REMOVAL_AFTER, ...options };
    // No other client ever uses this key, so delete it without a comparison: that saves a sixth of the time of acquire and release.
    if (this.#isSingleUse && !this.#isDoubtful && own && !mayHaveExpired(own)) return entries.delete(this.key, call);
    // A request that is carried out late must not remove a later entry with the same value, or this one after it was written again.
    const { value } = this;
    let last: Pick<V3OwnEntry, 'rank' | 'modified'> | undefined = own;
    for (let isRemoved = false; !isRemoved; last = undefined) {
      if (!last) {
        const { own: present } = await entries.get(this.key, call);
        if (present?.value !== value || (own && present.rank !== own.rank) || present.rank === this.#kept) return;
        last = present;
      }
      ({ isRemoved } = await entries.remove(this.key, { value, rank: last.rank, modified: last.modified }, call));
    }
  }

  /** Whether a late append may still create the key: until the search ends, or until the leases of all such appends are gone. */
  get #mayComeBack(): boolean {
    return this.#isSearching && [...this.#unclear].some((lease) => !lease?.isGoneForGood);
  }

  get #isSearching(): boolean {
    return this.#searchUntil !== undefined;
  }

  /** Attaches the own entry to a lease that nobody renews, so that the entry expires at the deadline or soon after. */
  async #expireAt(until: Deadline, own: V3OwnEntry, options: GatewayCall): Promise<void> {
    const lease = this.#session.leases.single(Math.max(1, Math.ceil(until.remaining / 1000)));
    // Until then, the entry is certainly not attached to this lease. After a failure, the next try uses another one.
    await lease.prepare(options).catch((error: unknown) => {
      lease.retire();
      throw error;
    });
    const { rank, modified } = own;
    const target = { value: this.value, rank, modified, lease: lease.id };
    const { moved } = await this.#session.requests.entries.move(this.key, target, options).catch((error: unknown) => {
      if (error instanceof EtcdException && !error.outcomeUnknown) lease.retire();
      throw error;
    });
    if (moved === undefined) lease.retire();
    this.#expiry = undefined;
    this.#forget();
    if (this.#unanswered.count === 0) return;
    this.#kept = own.rank;
    this.#searchUntil = Deadline.after(until.remaining / 1000 + SEARCH_APPEND_FOR);
    this.#unanswered.count = 0;
    for (const unclear of this.#unclear) unclear?.remove(this, true);
  }

  /** Stops the background removal, and takes over those of earlier tickets for the same key. */
  async #stopSettling(): Promise<void> {
    // A removal under way may be carried out although it is stopped.
    if (this.#own && unsettled.has(this)) this.#isContested = true;
    await stopped(this.#settling);
    unsettled.delete(this);
    for (const earlier of unsettled.othersFor(this)) {
      await stopped(earlier.#settling);
      unsettled.delete(earlier);
      this.#inherit(earlier);
    }
  }

  #inherit(earlier: V3Ticket): void {
    if (!this.#own) {
      this.#own = earlier.#own;
      this.#expiry = earlier.#expiry;
    }
    this.#isContested = true;
    this.#isLeft ||= earlier.#isLeft;
    if (this.#isLeft) this.#expiry = undefined;
    if (!this.#isSearching) this.#searchUntil = earlier.#searchUntil;
    this.#unanswered.count += earlier.#unanswered.count;
    for (const lease of new Set([earlier.#own?.lease, ...earlier.#unclear])) lease?.replace(earlier, this);
    for (const lease of earlier.#unclear) this.#unclear.add(lease);
    earlier.#own = undefined;
    earlier.#unclear.clear();
    earlier.#expiry = undefined;
    earlier.#searchUntil = undefined;
    earlier.#isLeft = false;
    earlier.#unanswered.count = 0;
  }

  #settleInBackground(): void {
    if (!this.#isLeft && !this.#expiry && !this.#mayComeBack) return;
    const stop = new Scope();
    const ended = detached(() =>
      this.#keepSettling(stop).catch((error) => debug('%s not removed: %s', this.key, error)),
    );
    this.#settling = { ended, stop };
    unsettled.add(this);
    this.#session.pending.add(this.key, ended);
  }

  async #keepSettling(signal: Scope): Promise<void> {
    const { closing } = this.#session.pending;
    const leases = [...this.#unclear, ...(this.#own ? [this.#own.lease] : [])];
    // Without a lease, or with an unknown one, the entry may stay for ever.
    const expired = leases.includes(undefined) ? Deadline.never : Deadline.after(this.#own?.granted ?? 0);
    let refused = false;
    const more = (hurried: boolean): boolean => {
      if (refused && expired.passed && !leases.some((lease) => lease?.isAlive)) return false;
      return this.#isLeft || this.#expiry !== undefined || (this.#mayComeBack && !hurried);
    };
    const attempt = async (): Promise<void> => {
      const error = await failureOf(this.#settle({ signal, background: true }), signal);
      if (error === undefined) return;
      debug('%s not removed yet: %s', this.key, error);
      refused = !mayPass(error);
    };
    try {
      await keepTrying(more, attempt, { most: REMOVE_EVERY, closing, signal });
    } finally {
      unsettled.delete(this);
    }
  }
}

const leasedEntry = (own: V3OwnEntry) => ({ own, lease: own.lease?.id });

/** Whether the entry may have expired, so that its key may now belong to another client. */
const mayHaveExpired = ({ sentAt, granted }: OwnEntry): boolean =>
  granted !== null && new Deadline(sentAt + granted * 1000).passed;

function leasesGone({ message, errorCode, httpStatus }: NotFound): EtcdException {
  const why = `${message}: ${MOST_LEASES} new leases did not exist when they were used`;
  return new EtcdException(`${why}; do all endpoints belong to the same cluster?`, { errorCode, httpStatus });
}

const ownFields = ({ key, value, rank }: V3Entry) => ({ key, value, rank });
