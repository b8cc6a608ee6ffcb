import { createHash } from 'node:crypto';
import { Scope, type Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { EtcdAlreadyExist, EtcdClientClosed, EtcdClusterIdChanged, EtcdLockExpired, mayPass } from '../../errors.ts';
import { keepTrying, type Running, stopped } from '../../pending-work.ts';
import { isShared, type LockMode } from '../../recipe/entries/entry-value.ts';
import { lost } from '../../recipe/entries/lost.ts';
import { nearestBlocking } from '../../recipe/rules.ts';
import type {
  EnterOptions,
  Entry,
  LeaveOptions,
  OwnEntry,
  RenewalOptions,
  Standing,
  StandingOptions,
  StoreCall,
  Ticket,
} from '../../recipe/store.ts';
import { Deadline } from '../../time.ts';
import type { CallOptions, V3Client } from '../client.ts';
import { NotFound } from '../errors.ts';
import type { Appended, Glance, Listing, V3Entry } from '../requests.ts';
import type { EtcdLease, Tenant } from './leases.ts';
import { PredecessorWatch } from './predecessor-watch.ts';
import { inOrder, isDirectly } from './reading.ts';
import { HEDGE_REMOVAL_AFTER, hedgeReadAfter, REMOVE_EVERY } from './timing.ts';

const debug = createDebug('lock');

/** The entry of a ticket, and the lease that it hangs on; undefined: it never expires. */
interface Held extends OwnEntry {
  readonly lease: EtcdLease | undefined;
}

/** Removals that continue in the background, by key. A later ticket for the same key ends them. */
const unsettled = new Map<string, V3Ticket>();

/** Returns the name of the own key: one value has one key, so that an append may be repeated. */
function idOf(value: string): string {
  const [uuid] = /[0-9a-f]{32}(?=(?:@[^@]*)?$)/.exec(value) ?? [];
  return uuid ?? createHash('sha256').update(value).digest('hex').slice(0, 32);
}

/** One entry in a queue on etcd v3, whatever answers are lost: see {@link Ticket}. */
export class V3Ticket implements Ticket, Tenant {
  readonly path: string;
  readonly value: string;
  readonly key: string;
  readonly #client: V3Client;
  readonly #watch: PredecessorWatch;
  #own: Held | undefined;
  #last: OwnEntry | undefined;
  /** What the append has shown. With it the first standing needs no read. */
  #fresh: Appended | undefined;
  /** The lease of an append that may still be carried out. */
  #unclear: EtcdLease | undefined;
  /** Appends that were sent and not answered. */
  readonly #unanswered = { count: 0 };
  /** Whether an entry may be in the queue that is no longer the own one. */
  #isLeft = false;
  /** When the entry may be gone, if it was left to expire and that has not been arranged yet. */
  #expiry: Deadline | undefined;
  /** The fencing token of the present hold, and the rank of its entry. A hold keeps its token. */
  #token: { readonly rank: bigint; readonly token: bigint } | undefined;
  #settling: Running | undefined;

  constructor(client: V3Client, path: string, value: string) {
    this.#client = client;
    this.path = path;
    this.value = value;
    this.key = `${path}/${idOf(value)}`;
    this.#watch = new PredecessorWatch(client);
  }

  get last(): OwnEntry | undefined {
    return this.#last;
  }

  async enter(ttl: number | null, { signal }: EnterOptions): Promise<OwnEntry | undefined> {
    await this.#stopSettling();
    // A removal comes first: the next entry must have a greater token.
    if (this.#isLeft || this.#expiry) await this.#settle({ signal });
    this.#fresh = undefined;
    if (this.#own && this.#last?.clusterId !== this.#client.clusterId) this.#forget();
    if (this.#own) return this.#reenter(this.#own, ttl, signal);
    for (;;) {
      const lease = await this.#leaseFor(ttl, signal);
      try {
        return await this.#append(lease, signal);
      } catch (error) {
        // The lease has ended since it was last renewed.
        if (!(error instanceof NotFound) || !lease) throw error;
        lease.retire();
      }
    }
  }

  async find(): Promise<OwnEntry | undefined> {
    const { own, clusterId } = await this.#client.requests.get(this.key, {});
    if (own?.value !== this.value) return undefined;
    if (own.rank === this.#own?.rank) return this.#own;
    await this.#stopSettling();
    this.#isLeft = false;
    return this.#set({ ...ownFields(own), clusterId, granted: null, sentAt: Number.NEGATIVE_INFINITY }, undefined);
  }

  async standing(mode: LockMode, options: StandingOptions): Promise<Standing> {
    const fresh = options.latest ? undefined : this.#fresh;
    this.#fresh = undefined;
    const own = this.#required();
    const { signal } = options;
    const call = { signal, attemptTimeout: hedgeReadAfter(own.granted) };
    if (mode === 'exclusive') {
      const glance = fresh && !fresh.existed ? fresh : await this.#client.requests.glance(this.key, own.rank, call);
      this.#checkPresent(own, glance);
      const position = glance === fresh ? fresh?.count : undefined;
      // The key before may be of another lock whose name begins with this lock's: then only the whole queue tells.
      if (!glance.before) return this.#stand(undefined, glance, { first: undefined, entries: undefined, position: 1 });
      if (isDirectly(this.path, glance.before.key)) {
        const first = await this.#firstFor(call);
        return this.#stand(glance.before, glance, { first, entries: undefined, position });
      }
    }
    const listing = fresh?.all ? { ...fresh, entries: fresh.all } : await this.#client.requests.read(this.path, call);
    const entries = listing.entries.filter(({ key }) => isDirectly(this.path, key));
    const present = entries.find(({ key }) => key === this.key);
    this.#checkPresent(own, { ...listing, own: present, before: undefined });
    const behind = present && nearestBlocking(entries, present, mode);
    const first = behind ? await this.#firstFor(call) : inOrder(entries)[0];
    return this.#stand(behind, listing, { first, entries, position: undefined });
  }

  async changed(on: Entry, { signal }: StoreCall): Promise<boolean> {
    return this.#watch.changed(on, { ttl: this.#required().granted, signal });
  }

  async renew(options: RenewalOptions): Promise<OwnEntry> {
    const own = this.#required();
    if (!own.lease) return own;
    try {
      const renewal = await own.lease.renew(this, options, own.sentAt);
      this.#checkPresent(own, { ...renewal, own: renewal.entries.get(this.key), before: undefined });
      if (options.signal?.aborted) throw options.signal.reason;
      const { sentAt, granted, member } = renewal;
      return this.#set({ ...own, sentAt, granted, member }, own.lease);
    } catch (error) {
      throw error instanceof NotFound ? this.#lost(own, 'its lease has ended') : error;
    }
  }

  async verify(): Promise<Error | undefined> {
    const own = this.#required();
    try {
      this.#checkPresent(own, await this.#client.requests.get(this.key, {}));
      return undefined;
    } catch (error) {
      if (error instanceof EtcdLockExpired || error instanceof EtcdClusterIdChanged) return error;
      throw error;
    }
  }

  async leave({ signal, until }: LeaveOptions = {}): Promise<void> {
    this.#watch.end();
    await this.#stopSettling();
    this.#fresh = undefined;
    if (until && !until.passed) this.#expiry = until;
    else this.#isLeft ||= this.#own !== undefined || this.#unanswered.count > 0;
    try {
      await this.#settle({ signal, background: true });
    } catch (error) {
      this.#settleInBackground();
      throw error;
    }
  }

  /** Returns the lease for a new entry, ready for it. */
  async #leaseFor(ttl: number | null, signal: Source | undefined): Promise<EtcdLease | undefined> {
    if (ttl === null) return undefined;
    for (;;) {
      const lease = this.#client.leases.shared(ttl);
      try {
        await lease.prepare({ signal });
        return lease;
      } catch (error) {
        if (!(error instanceof NotFound)) throw error;
      }
    }
  }

  async #append(lease: EtcdLease | undefined, signal: Source | undefined): Promise<OwnEntry> {
    lease?.add(this);
    let appended: Appended;
    try {
      // A reader may share the lock with the one before it, so it must know the whole queue.
      const whole = isShared(this.value);
      const own = { value: this.value, lease: lease?.id, whole, unanswered: this.#unanswered };
      appended = await this.#client.requests.append(this.key, { ...own, signal });
    } catch (error) {
      if (this.#unanswered.count === 0) lease?.remove(this);
      else this.#unclear = lease;
      throw error;
    }
    const { own, clusterId } = appended;
    if (own.value !== this.value) throw new EtcdAlreadyExist(`${this.key} exists already, with another value`);
    this.#unclear = this.#unanswered.count > 0 ? lease : undefined;
    this.#isLeft = false;
    const { sentAt, granted } = lease ?? { sentAt: Number.POSITIVE_INFINITY, granted: null };
    const entry = this.#set({ ...ownFields(own), clusterId, sentAt, granted }, lease);
    if (own.lease !== lease?.id) return (await this.#moveTo(entry, lease, signal)) ?? this.#append(lease, signal);
    this.#fresh = appended;
    return entry;
  }

  /** Renews the own entry with this TTL. Resolves to undefined if it is gone. */
  async #reenter(own: Held, ttl: number | null, signal: Source | undefined): Promise<OwnEntry | undefined> {
    try {
      if (own.lease && own.lease.ttl === ttl) {
        return await this.renew({ signal, timeout: Math.max(1, own.granted ?? 1) });
      }
      const lease = await this.#leaseFor(ttl, signal);
      lease?.add(this);
      const moved = await this.#moveTo(own, lease, signal);
      if (moved && own.lease !== lease) own.lease?.remove(this);
      return moved;
    } catch (error) {
      if (!(error instanceof EtcdLockExpired)) throw error;
      this.#forget();
      return undefined;
    }
  }

  /** Puts the own entry on another lease. Resolves to undefined if the entry is gone. */
  async #moveTo(own: OwnEntry, lease: EtcdLease | undefined, signal: Source | undefined): Promise<Held | undefined> {
    const guard = { value: this.value, rank: own.rank };
    const { moved, clusterId } = await this.#client.requests.move(this.key, guard, lease?.id, { signal });
    if (clusterId !== own.clusterId) throw lost(own, clusterId, '');
    if (!moved) {
      this.#forget();
      return undefined;
    }
    const { sentAt, granted } = lease ?? { sentAt: Number.POSITIVE_INFINITY, granted: null };
    return this.#set({ ...own, sentAt, granted }, lease);
  }

  /** @throws the error that says why the own entry is lost, if the answer shows that */
  #checkPresent(own: OwnEntry, { own: present, clusterId }: Omit<Glance, 'revision'>): void {
    if (clusterId !== own.clusterId) throw lost(own, clusterId, '');
    if (!present) throw this.#lost(own, 'its key is gone');
    if (present.rank !== own.rank || present.value !== this.value)
      throw this.#lost(own, 'its key was re-created, or carries another value');
  }

  #lost(own: OwnEntry, why: string): Error {
    return lost(own, own.clusterId, why);
  }

  #stand(
    behind: V3Entry | undefined,
    { revision }: Glance | Listing,
    about: Pick<Standing, 'first' | 'entries' | 'position'>,
  ): Standing {
    if (behind) {
      this.#watch.after(revision);
      return { behind, fencingToken: revision, ...about };
    }
    this.#watch.end();
    const { rank } = this.#required();
    if (this.#token?.rank !== rank) this.#token = { rank, token: revision };
    return { behind, fencingToken: this.#token.token, ...about };
  }

  /** Returns the entry that is served first, for messages: undefined if it cannot be read. */
  async #firstFor(call: CallOptions): Promise<Entry | undefined> {
    try {
      const first = await this.#client.requests.first(this.path, call);
      return first && isDirectly(this.path, first.key) ? first : undefined;
    } catch (error) {
      if (call.signal?.aborted) throw error;
      return undefined;
    }
  }

  #required(): Held {
    if (this.#own) return this.#own;
    throw new EtcdLockExpired(`${this.path} has no entry with the value ${this.value}`);
  }

  #set(entry: OwnEntry, lease: EtcdLease | undefined): Held {
    this.#last = { ...entry };
    this.#own = { ...entry, lease };
    return this.#own;
  }

  /** The own entry is gone. */
  #forget(): void {
    this.#own?.lease?.remove(this, this.#unclear !== undefined);
    this.#own = undefined;
    this.#fresh = undefined;
  }

  /** Removes the own entry, or leaves it to expire. */
  async #settle(options: CallOptions): Promise<void> {
    const own = this.#own;
    if (this.#expiry && own) {
      if (!this.#expiry.passed) {
        await this.#expireAt(this.#expiry, own, options);
        return;
      }
      this.#isLeft = true;
    }
    this.#expiry = undefined;
    if (!this.#isLeft) return;
    const guard = { value: this.value, rank: own?.rank };
    await this.#client.requests.remove(this.key, guard, { attemptTimeout: HEDGE_REMOVAL_AFTER, ...options });
    this.#isLeft = false;
    const unclear = this.#unclear;
    this.#unclear = undefined;
    this.#unanswered.count = 0;
    this.#own = undefined;
    own?.lease?.remove(this, unclear === own.lease);
    if (unclear !== own?.lease) unclear?.remove(this, true);
  }

  /** Puts the own entry on a lease that nobody keeps alive. */
  async #expireAt(until: Deadline, own: Held, options: CallOptions): Promise<void> {
    const lease = this.#client.leases.single(Math.max(1, Math.ceil(until.remaining / 1000)));
    await lease.prepare(options);
    const guard = { value: this.value, rank: own.rank };
    const { moved } = await this.#client.requests.move(this.key, guard, lease.id, options);
    if (!moved) lease.end();
    this.#expiry = undefined;
    this.#forget();
  }

  /** Stops the background removal, and takes over that of an earlier ticket for the same key. */
  async #stopSettling(): Promise<void> {
    await stopped(this.#settling);
    const earlier = unsettled.get(this.key);
    unsettled.delete(this.key);
    if (!earlier || earlier === this) return;
    await stopped(earlier.#settling);
    if (earlier.#isLeft && earlier.#own && !this.#own) {
      this.#own = earlier.#own;
      this.#isLeft = true;
    }
    this.#unclear ??= earlier.#unclear;
    earlier.#isLeft = false;
  }

  #settleInBackground(): void {
    if (!this.#isLeft && !this.#expiry) return;
    const stop = new Scope();
    const ended = this.#keepSettling(stop).catch((error) => debug('%s not removed: %s', this.key, error));
    this.#settling = { ended, stop };
    unsettled.set(this.key, this);
    this.#client.pending.add(this.key, ended);
  }

  async #keepSettling(signal: Scope): Promise<void> {
    const { closing } = this.#client.pending;
    const expired = Deadline.after(this.#own?.granted ?? 0);
    let refused = false;
    const more = (): boolean => (this.#isLeft || this.#expiry !== undefined) && !(refused && expired.passed);
    const attempt = async (): Promise<void> => {
      try {
        await this.#settle({ signal, background: true });
      } catch (error) {
        if (signal.aborted || error instanceof EtcdClientClosed) throw error;
        debug('%s not removed yet: %s', this.key, error);
        refused = !mayPass(error);
      }
    };
    try {
      await keepTrying(more, attempt, { most: REMOVE_EVERY, closing, signal });
    } finally {
      if (unsettled.get(this.key) === this) unsettled.delete(this.key);
    }
  }
}

const ownFields = ({ key, value, rank }: V3Entry) => ({ key, value, rank });
