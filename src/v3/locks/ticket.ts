import { Scope, type Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { EtcdClusterIdChanged, EtcdException, EtcdLockExpired, EtcdValueError, mayPass } from '../../errors.ts';
import { failureOf, keepTrying, type Running, stopped } from '../../pending-work.ts';
import { claimOf, isAlone } from '../../recipe/entries/entry-value.ts';
import { lost } from '../../recipe/entries/lost.ts';
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
import { Deadline } from '../../time.ts';
import type { Appended, V3Entry } from '../answers.ts';
import type { CallOptions, V3Client } from '../client.ts';
import { NotFound } from '../errors.ts';
import { idOf } from './entry-id.ts';
import type { EtcdLease, Tenant } from './leases.ts';
import { checkPresent, Standings, whyLost } from './standings.ts';
import { HEDGE_REMOVAL_AFTER, REMOVE_EVERY, SEARCH_APPEND_FOR } from './timing.ts';

const debug = createDebug('lock');

/** The own entry of a ticket, with its lease. */
interface Held extends OwnEntry {
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

/** Tickets of this process that still remove keys in the background, by cluster and key. A later ticket takes over that work. */
const unsettled = new Map<string, V3Ticket>();

/** A {@link Ticket} on etcd v3. Its value determines its key, so it has at most one entry, even if answers are lost. */
export class V3Ticket implements Ticket, Tenant {
  readonly path: string;
  readonly value: string;
  readonly key: string;
  readonly #client: V3Client;
  readonly #standings: Standings;
  readonly #isSingleUse: boolean;
  #own: Held | undefined;
  #last: OwnEntry | undefined;
  /** The leases of appends that may still be carried out; undefined: an append without a lease. */
  readonly #unclear = new Set<EtcdLease | undefined>();
  /** Deadline of the search for the key after its removal: a late append may create the key again. */
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

  constructor(client: V3Client, path: string, value: string, { isSingleUse = false }: TicketOptions = {}) {
    this.#client = client;
    this.path = path;
    this.value = value;
    this.key = `${path}/${idOf(value)}`;
    this.#isSingleUse = isSingleUse;
    this.#standings = new Standings(client, path);
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

  async enter(ttl: number | null, { signal, keepAlive, replacing }: EnterOptions): Promise<OwnEntry | undefined> {
    await this.#stopSettling();
    // Finish the removal first: the next entry must have a greater token.
    if (this.#isLeft || this.#expiry) await this.#settle({ signal });
    this.#standings.appended(undefined);
    for (let tries = 1; ; tries += 1) {
      try {
        if (this.#own) return await this.#reenter(this.#own, { ttl, keepAlive }, signal);
        return await this.#append(await this.#leaseFor({ ttl, keepAlive }, signal), signal, replacing);
      } catch (error) {
        // The lease has ended since it was last renewed.
        if (!(error instanceof NotFound)) throw error;
        if (tries === MOST_LEASES) throw leasesGone(error);
      }
    }
  }

  async find(): Promise<OwnEntry | undefined> {
    await this.#stopSettling();
    const { own, clusterId } = await this.#client.requests.get(this.key, {});
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
    try {
      return await this.#standings.read(this.#required(), options);
    } catch (error) {
      throw this.#noted(error);
    }
  }

  async changed(_: Entry, { signal }: StoreCall): Promise<boolean> {
    return this.#standings.changed(this.#required().granted, signal);
  }

  async renew(options: RenewalOptions): Promise<OwnEntry> {
    const own = this.#required();
    if (!own.lease) return own;
    try {
      const renewal = await own.lease.renew(this, options, own.sentAt);
      const { clusterId } = renewal;
      const present = renewal.entries.get(this.key);
      checkPresent(own, { clusterId, own: present });
      if (present?.lease !== own.lease.id) throw this.#lost(own, 'its key was written again, with another lease');
      if (options.signal?.aborted) throw options.signal.reason;
      const { sentAt, granted, member } = renewal;
      return this.#set({ ...own, sentAt, granted, member }, own);
    } catch (error) {
      // Another cluster also reports that the lease does not exist: `lost` compares the cluster ids.
      throw this.#noted(error instanceof NotFound ? lost(own, this.#client.clusterId, 'its lease has ended') : error);
    }
  }

  onExpired(lease: EtcdLease): void {
    // The own entry may have another lease: one that only an unanswered append has used does not concern it.
    if (this.#own?.lease !== lease || unsettled.get(this.#id) === this) return;
    this.#isLeft = true;
    this.#settleInBackground();
  }

  async verify(): Promise<Error | undefined> {
    const own = this.#required();
    try {
      const why = whyLost(own, await this.#client.requests.get(this.key, {}));
      return why && this.#noted(why);
    } catch (error) {
      if (error instanceof EtcdClusterIdChanged) return this.#noted(error);
      throw error;
    }
  }

  watch(onLost: (why: Error) => void): () => void {
    return this.#client.losses.watch({ own: this.#required(), onLost: (why) => onLost(this.#noted(why)) });
  }

  async leave({ signal, until }: LeaveOptions = {}): Promise<void> {
    await this.#stopSettling();
    this.#standings.appended(undefined);
    if (until && !until.passed) this.#expiry = until;
    else this.#isLeft ||= this.#own !== undefined || this.#unanswered.count > 0;
    try {
      await this.#settle({ signal, background: this.#client.pending.closing.aborted });
    } catch (error) {
      this.#settleInBackground();
      throw error;
    }
    if (this.#mayComeBack) this.#settleInBackground();
  }

  /** Returns a lease that is ready for the own entry. This ticket becomes its tenant at once, so that the lease is not revoked. */
  async #leaseFor({ ttl, keepAlive }: Terms, signal: Source | undefined): Promise<EtcdLease | undefined> {
    if (ttl === null) return undefined;
    for (;;) {
      const { leases } = this.#client;
      const lease = keepAlive ? leases.shared(ttl) : leases.single(ttl);
      lease.add(this);
      try {
        await lease.prepare({ signal });
        if (!lease.isOver) return lease;
        this.#quit(lease);
      } catch (error) {
        this.#quit(lease);
        if (!(error instanceof NotFound)) throw error;
      }
    }
  }

  /** Stops being a tenant of the lease, unless the own entry is attached to it or a late append may still create one with it. */
  #quit(lease: EtcdLease | undefined): void {
    if (this.#own?.lease !== lease && !this.#unclear.has(lease)) lease?.remove(this);
  }

  async #append(
    lease: EtcdLease | undefined,
    signal: Source | undefined,
    other: Ticket | undefined,
  ): Promise<OwnEntry | undefined> {
    const old = other instanceof V3Ticket && other.isReplaceable ? other : undefined;
    let appended: Appended;
    try {
      // The entry may hold the lock together with the entries before it, so the whole queue is needed.
      const whole = !isAlone(claimOf(this.value));
      const own = {
        value: this.value,
        lease: lease?.id,
        whole,
        unanswered: this.#unanswered,
        replacing: old ? old.#own : undefined,
      };
      appended = await this.#client.requests.append(this.key, { ...own, signal });
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
    // An entry with another lease was created by an earlier append. Leave its lease only after the entry has been moved.
    const isMoved = own.lease !== lease?.id;
    if (!isMoved) this.#standings.appended(appended);
    const entered = isMoved
      ? await this.#moveTo(this.#found(own, clusterId), lease, signal)
      : this.#enters({ ...ownFields(own), clusterId }, own.modified, lease);
    this.#quitAnswered();
    return entered;
  }

  /** Stops being a tenant of the leases of appends with an unknown outcome, once none of them can be carried out any more. */
  #quitAnswered(): void {
    if (this.#unanswered.count > 0 || this.#isSearching) return;
    const leases = [...this.#unclear];
    this.#unclear.clear();
    for (const lease of leases) this.#quit(lease);
  }

  /** Renews the own entry with these terms. Resolves to undefined if it is gone. */
  async #reenter(own: Held, terms: Terms, signal: Source | undefined): Promise<OwnEntry | undefined> {
    // An answer of another cluster came since the last write.
    if (own.clusterId !== this.#client.clusterId) {
      this.#forget();
      return undefined;
    }
    try {
      if (own.lease && own.lease.ttl === terms.ttl && (terms.keepAlive || !own.lease.isShared))
        return await this.renew({ signal, timeout: Math.max(1, own.granted ?? 1) });
      return await this.#moveTo(own, await this.#leaseFor(terms, signal), signal);
    } catch (error) {
      if (!(error instanceof EtcdLockExpired)) throw error;
      this.#forget();
      return undefined;
    }
  }

  /** Attaches the own entry to another lease. Resolves to undefined if the entry is gone. */
  async #moveTo(own: Held, lease: EtcdLease | undefined, signal: Source | undefined): Promise<Held | undefined> {
    try {
      const { rank, modified } = own;
      const target = { value: this.value, rank, modified, lease: lease?.id };
      const { moved, clusterId } = await this.#client.requests.move(this.key, target, { signal });
      if (clusterId !== own.clusterId) throw lost(own, clusterId, '');
      if (moved === undefined) {
        this.#forget();
        return undefined;
      }
      if (own.lease !== lease) own.lease?.remove(this);
      return this.#enters(own, moved, lease);
    } catch (error) {
      if (error instanceof NotFound) lease?.setGone();
      throw error;
    } finally {
      this.#quit(lease);
    }
  }

  /** Records that the own entry is now attached to this lease. */
  #enters(
    entry: Pick<OwnEntry, 'key' | 'value' | 'rank' | 'clusterId'>,
    modified: bigint,
    lease: EtcdLease | undefined,
  ): Held {
    lease?.entered(this);
    const { sentAt, granted } = lease ?? { sentAt: Number.POSITIVE_INFINITY, granted: null };
    return this.#set({ ...entry, sentAt, granted }, { modified, lease });
  }

  /** Takes over an entry found in the queue as the own entry. Whether it has a lease of this ticket is not known. */
  #found(own: V3Entry, clusterId: string | undefined): Held {
    const unknown = { granted: null, sentAt: Number.NEGATIVE_INFINITY };
    return this.#set({ ...ownFields(own), clusterId, ...unknown }, { modified: own.modified, lease: undefined });
  }

  /** Returns the error. If it reports a loss, records that the key may now belong to another client. */
  #noted<E>(error: E): E {
    if (error instanceof EtcdLockExpired || error instanceof EtcdClusterIdChanged) this.#isDoubtful = true;
    return error;
  }

  #lost(own: OwnEntry, why: string): Error {
    return lost(own, own.clusterId, why);
  }

  #required(): Held {
    if (this.#own) return this.#own;
    throw new EtcdLockExpired(`${this.path} has no entry with the value ${this.value}`);
  }

  #set(entry: OwnEntry, { modified, lease }: Pick<Held, 'modified' | 'lease'>): Held {
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
  async #settle(options: CallOptions): Promise<void> {
    const own = this.#own;
    if (this.#expiry && own) {
      if (!this.#expiry.passed) return this.#expireAt(this.#expiry, own, options);
      this.#isLeft = true;
    }
    this.#expiry = undefined;
    if (!this.#isLeft && !this.#mayComeBack) return;
    await this.#removeKey(own, options);
    this.#isLeft = false;
    if (this.#unanswered.count > 0) this.#searchUntil = Deadline.after(SEARCH_APPEND_FOR);
    this.#unanswered.count = 0;
    this.#own = undefined;
    for (const lease of new Set([own?.lease, ...this.#unclear])) lease?.remove(this, this.#unclear.has(lease));
  }

  /** Removes the key, if it still has the entry of this ticket. */
  async #removeKey(own: Held | undefined, options: CallOptions): Promise<void> {
    const { requests } = this.#client;
    const call = { attemptTimeout: HEDGE_REMOVAL_AFTER, ...options };
    // No other client ever uses this key, so delete it without a comparison: that saves a sixth of the time of acquire and release.
    if (this.#isSingleUse && !this.#isDoubtful && own && !mayHaveExpired(own)) return requests.delete(this.key, call);
    // A request that is carried out late must not remove a later entry with the same value.
    let rank = own?.rank;
    if (rank === undefined) {
      const { own: present } = await requests.get(this.key, call);
      if (present?.value === this.value) rank = present.rank;
    }
    if (rank !== undefined) await requests.remove(this.key, { value: this.value, rank }, call);
  }

  /** Whether a late append may still create the key: until the search ends, or until the leases of all such appends are over. */
  get #mayComeBack(): boolean {
    return this.#isSearching && [...this.#unclear].some((lease) => !lease?.isOver);
  }

  get #isSearching(): boolean {
    return this.#searchUntil !== undefined && !this.#searchUntil.passed;
  }

  /** Attaches the own entry to a lease that nobody renews, so that the entry expires at the deadline or soon after. */
  async #expireAt(until: Deadline, own: Held, options: CallOptions): Promise<void> {
    const lease = this.#client.leases.single(Math.max(1, Math.ceil(until.remaining / 1000)));
    await lease.prepare(options);
    const { rank, modified } = own;
    const target = { value: this.value, rank, modified, lease: lease.id };
    const { moved } = await this.#client.requests.move(this.key, target, options).catch((error: unknown) => {
      // The entry is certainly not attached to this lease, and the next try uses another one.
      if (error instanceof EtcdException && !error.outcomeUnknown) lease.retire();
      throw error;
    });
    if (moved === undefined) lease.retire();
    this.#expiry = undefined;
    this.#forget();
  }

  /** Stops the background removal, and takes over that of an earlier ticket for the same key. */
  async #stopSettling(): Promise<void> {
    await stopped(this.#settling);
    const earlier = unsettled.get(this.#id);
    unsettled.delete(this.#id);
    if (!earlier || earlier === this) return;
    await stopped(earlier.#settling);
    this.#inherit(earlier);
  }

  #inherit(earlier: V3Ticket): void {
    if (!this.#own) {
      this.#own = earlier.#own;
      this.#expiry = earlier.#expiry;
    }
    this.#isLeft ||= earlier.#isLeft;
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

  /** Id of this ticket in {@link unsettled}. It contains the cluster id, because two clusters may have locks with the same name. */
  get #id(): string {
    return `${this.#last?.clusterId ?? this.#client.clusterId} ${this.key}`;
  }

  #settleInBackground(): void {
    if (!this.#isLeft && !this.#expiry && !this.#mayComeBack) return;
    const stop = new Scope();
    // The cluster id, which is part of this id, may become known later.
    const id = this.#id;
    const ended = this.#keepSettling(id, stop).catch((error) => debug('%s not removed: %s', this.key, error));
    this.#settling = { ended, stop };
    unsettled.set(id, this);
    this.#client.pending.add(this.key, ended);
  }

  async #keepSettling(id: string, signal: Scope): Promise<void> {
    const { closing } = this.#client.pending;
    const expired = Deadline.after(this.#own?.granted ?? 0);
    const lease = this.#own?.lease;
    let refused = false;
    const more = (hurried: boolean): boolean => {
      if (refused && expired.passed && !lease?.isAlive) return false;
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
      if (unsettled.get(id) === this) unsettled.delete(id);
    }
  }
}

/** Whether the entry may have expired, so that its key may now belong to another client. */
const mayHaveExpired = ({ sentAt, granted }: OwnEntry): boolean =>
  granted !== null && new Deadline(sentAt + granted * 1000).passed;

function leasesGone({ message, errorCode, httpStatus }: NotFound): EtcdException {
  const why = `${message}: ${MOST_LEASES} new leases did not exist when they were used`;
  return new EtcdException(`${why}; do all endpoints belong to the same cluster?`, { errorCode, httpStatus });
}

const ownFields = ({ key, value, rank }: V3Entry) => ({ key, value, rank });
