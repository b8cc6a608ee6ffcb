import { detached } from '../../base/async-context.ts';
import { ignore, orAborted, Scope, type Source } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { failureOf, keepTrying, type Running, STOPPED, stopped } from '../../base/pending-work.ts';
import { Deadline, now } from '../../base/time.ts';
import { EtcdClusterIdChanged, EtcdException, EtcdLockExpired, mayPass } from '../../errors.ts';
import { noEntry } from '../../recipe/entries/lost.ts';
import { HEDGE_REMOVAL_AFTER, hedgeReadAfter, REMOVE_EVERY, SEARCH_APPEND_FOR } from '../../recipe/entries/timing.ts';
import type {
  EnterOptions,
  Entry,
  FencingTokens,
  LeaveOptions,
  RenewalOptions,
  Standing,
  StandingOptions,
  StoreCall,
  Ticket,
  TicketOptions,
} from '../../recipe/store.ts';
import type { KeysApi, KeysCall } from '../keys-api.ts';
import { hasFullWidth } from '../paths.ts';
import { adopted, announce, append, type RequestLimits, remove, renew, type V2OwnEntry, verify } from './entry.ts';
import { readQueue, type V2Entry, type V2Queue } from './reading.ts';
import { V2Standings } from './standing.ts';
import { ANNOUNCE_WITHIN, enterTimeout, hedgeRenewalAfter, READ_EVERY } from './timing.ts';
import { UnclearAppends } from './unclear.ts';
import type { UnusedDirectories } from './unused-directories.ts';

const debug = createDebug('lock');

/** Abort reason of an announcement that takes too long. */
const TOO_LATE = new Error('the announcement was not answered in time');

/**
 * Tickets of this process that still remove keys in the background, by lock and value. A later ticket with the same value takes
 * over that work, also on another client. Else the earlier ticket would remove the entry of the later one.
 */
const unsettled = new Map<string, V2Ticket>();

interface V2TicketOptions extends TicketOptions {
  readonly path: string;
  readonly value: string;
}

/**
 * A {@link Ticket} on etcd v2. It has at most one entry, finds that entry by its value, and leaves no key behind, with the exception
 * below.
 *
 * An append whose answer is lost may be committed at any later time. So the ticket counts each such append until its key has been
 * seen. It reads the queue before the next append, and removes extra keys with its value after each listing. Once the entry has
 * been given up, background reads do the same for {@link SEARCH_APPEND_FOR}, or until the client is closed. A key that appears later
 * stays until its TTL has passed. An entry that is left to expire stays the own one, so these reads do not remove it.
 */
export class V2Ticket implements Ticket {
  readonly path: string;
  readonly value: string;
  readonly #keys: KeysApi;
  readonly #unused: UnusedDirectories;
  readonly #mayExist: boolean;
  #entry: V2OwnEntry | undefined;
  #last: V2OwnEntry | undefined;
  #fresh: Promise<V2Queue | undefined> | undefined;
  #standings: V2Standings | undefined;
  #appending: Running | undefined;
  readonly #unclear = new UnclearAppends();
  /** Whether an earlier append may have created a key before the own entry. */
  #mayBeSecond = false;
  /** Entries given up that may still be in the queue. */
  #toRemove: readonly V2OwnEntry[] = [];
  /** When the own entry is to expire; undefined once its TTL has been set to that time. */
  #expiry: Deadline | undefined;
  #settling: Running | undefined;

  constructor(keys: KeysApi, unused: UnusedDirectories, { path, value, mayExist = false }: V2TicketOptions) {
    this.#keys = keys;
    this.#unused = unused;
    this.path = path;
    this.value = value;
    this.#mayExist = mayExist;
  }

  get last(): V2OwnEntry | undefined {
    return this.#last;
  }

  get fencingTokens(): FencingTokens | undefined {
    return this.#last && { v2: this.#last.rank };
  }

  async find(options: StoreCall = {}): Promise<V2OwnEntry | undefined> {
    await this.#stopSettling();
    try {
      return await this.#find(options);
    } finally {
      this.#settleInBackground();
    }
  }

  async enter(ttl: number | null, { signal, failed }: EnterOptions): Promise<V2OwnEntry | undefined> {
    this.#standings?.end();
    this.#standings = undefined;
    await this.#stopSettling();
    this.#expiry = undefined;
    if (this.#toRemove.length > 0) await this.#settle({ signal });
    const limits = { signal, attemptTimeout: enterTimeout(ttl, failed) };
    for (;;) {
      if (this.#mayBeSecond || (!this.#entry && (this.#mayExist || this.#unclear.any)))
        await this.#find(searchOptions(ttl, signal));
      const entry = this.#entry ? await this.#renewed(this.#entry, ttl, limits) : await this.#appended(ttl, limits);
      if (entry || !this.#entry) return entry;
    }
  }

  async standing({ signal, latest = false }: StandingOptions): Promise<Standing> {
    this.#standings ??= new V2Standings(this.#keys, {
      path: this.path,
      own: () => this.#own(),
      fresh: () => this.#takeFresh(),
      announce: (ending) => this.#announce(ending),
      removeExtras: (queue, ending) => this.#removeExtras(queue, { signal: ending }),
    });
    if (latest) this.#standings.doubt();
    return this.#standings.read(signal);
  }

  async changed(on: Entry, { signal }: StoreCall): Promise<boolean> {
    return this.#standings?.changed(on, signal) ?? false;
  }

  async renew({ signal, timeout }: RenewalOptions): Promise<V2OwnEntry> {
    const own = this.#own();
    const { granted } = own;
    const attemptTimeout = granted === null ? undefined : hedgeRenewalAfter(granted);
    const renewed = await renew(this.#keys, own, granted, { signal, attemptTimeout, timeout });
    if (this.#entry === own) this.#update(renewed);
    return renewed;
  }

  async verify(): Promise<Error | undefined> {
    return this.#entry ? verify(this.#keys, this.#entry) : this.#noEntry();
  }

  async leave({ signal, until }: LeaveOptions = {}): Promise<void> {
    this.#standings?.end();
    await this.#stopSettling();
    await this.#endAppend(signal);
    if (until && !until.passed) this.#expiry = until;
    else this.#giveUpEntry();
    try {
      await this.#settle({ signal, background: this.#keys.cleanups.closing.aborted });
    } finally {
      this.#settleInBackground();
    }
  }

  async #announce(signal: Source | undefined): Promise<V2OwnEntry | undefined> {
    const own = this.#own();
    const scope = new Scope(signal).abortAt(Deadline.after(ANNOUNCE_WITHIN), () => TOO_LATE);
    try {
      const announced = await announce(this.#keys, own, { signal: scope });
      if (this.#entry === own) this.#update(announced);
      return announced;
    } catch (error) {
      if (signal?.aborted || !(error === TOO_LATE || mayPass(error))) throw error;
      debug('%s not announced: %s', own.key, error);
      return undefined;
    } finally {
      scope.dispose();
    }
  }

  /** Returns the queue read right after the append: only once, and only if the own entry has not changed since. */
  async #takeFresh(): Promise<V2Queue | undefined> {
    const queue = this.#fresh;
    this.#fresh = undefined;
    return queue;
  }

  #own(): V2OwnEntry {
    if (!this.#entry) throw this.#noEntry();
    return this.#entry;
  }

  #noEntry(): EtcdLockExpired {
    return noEntry(this.path, this.value);
  }

  #update(entry: V2OwnEntry): void {
    this.#entry = entry;
    this.#last = entry;
    this.#fresh = undefined;
  }

  /** Removes extra keys with the own value: of appends with an unknown outcome, or of an append that a proxy sent twice. */
  async #removeExtras({ entries }: V2Queue, options: KeysCall): Promise<void> {
    for (const entry of entries)
      if (entry.value === this.value && entry.key !== this.#entry?.key) await this.#removeExtra(entry, options);
  }

  async #find(options: KeysCall): Promise<V2OwnEntry | undefined> {
    const queue = await this.#read(options);
    const [first, ...further] = queue.withValue(this.value);
    for (const extra of further) await this.#removeExtra(extra, options);
    if (first && first.key !== this.#entry?.key) {
      checkWidth(first.key);
      this.#unclear.seen(first);
      this.#update(adopted(first, queue.clusterId));
    }
    this.#mayBeSecond = false;
    this.#unclear.searched();
    // Keep the entry found, even if it was given up before. A removal request under way fails once a renewal changes the index.
    this.#toRemove = this.#toRemove.filter(({ key }) => key !== first?.key);
    return first && this.#entry;
  }

  /** Renews the entry. Resolves to undefined if the entry is gone. */
  async #renewed(own: V2OwnEntry, ttl: number | null, limits: KeysCall): Promise<V2OwnEntry | undefined> {
    try {
      this.#update(await renew(this.#keys, own, ttl, limits));
    } catch (error) {
      if (!(error instanceof EtcdLockExpired)) throw error;
      this.#entry = undefined;
    }
    return this.#entry;
  }

  /** Appends an entry. Resolves to undefined if the own entry must be renewed: it is of an earlier append, or not fresh. */
  async #appended(ttl: number | null, { signal, attemptTimeout }: RequestLimits): Promise<V2OwnEntry | undefined> {
    const stop = new Scope();
    const work = this.#append(ttl, { signal: stop, attemptTimeout });
    // An abort of the call does not abort the append: its answer names the key to remove.
    this.#appending = { ended: work.then(ignore, ignore), stop };
    const entry = await (signal ? orAborted(work, signal) : work);
    this.#appending = undefined;
    checkWidth(entry.key);
    if (!this.#unclear.any) return entry;
    this.#mayBeSecond = true;
    const found = await this.#find(searchOptions(ttl, signal));
    return found === entry && isFresh(entry) ? entry : undefined;
  }

  async #append(ttl: number | null, limits: RequestLimits): Promise<V2OwnEntry> {
    this.#unclear.sent(this.#last);
    try {
      const { entry, queue } = await append(this.#keys, this.path, this.value, ttl, limits);
      this.#unclear.answered(entry);
      this.#update(entry);
      this.#fresh = queue;
      return entry;
    } catch (error) {
      if (error instanceof EtcdException && !error.outcomeUnknown) this.#unclear.answered();
      else this.#unclear.lost();
      throw error;
    }
  }

  /** Waits for the answer to an append under way. Aborts the append when the signal aborts. */
  async #endAppend(signal: Source | undefined): Promise<void> {
    if (!this.#appending) return;
    const { ended, stop } = this.#appending;
    await (signal ? orAborted(ended, signal).catch(() => stop.abort(STOPPED)) : ended);
    await ended;
    this.#appending = undefined;
  }

  async #removeExtra(extra: V2Entry, options: KeysCall): Promise<void> {
    debug('%s: removing %s, an extra key with the same value', this.path, extra.key);
    await remove(this.#keys, extra, options);
    if (extra.key !== this.#entry?.key) this.#unclear.seen(extra);
  }

  #giveUpEntry(): void {
    if (this.#entry) this.#toRemove = [...this.#toRemove, this.#entry];
    this.#entry = undefined;
    this.#expiry = undefined;
  }

  /** Sets the TTL of an entry left to expire; removes the entries given up, and keys of appends with an unknown outcome. */
  async #settle(options: KeysCall): Promise<void> {
    if (this.#expiry?.passed) this.#giveUpEntry();
    const until = this.#expiry;
    if (until && this.#entry) await this.#expireAt(until, this.#entry, options);
    for (const entry of this.#toRemove) {
      await remove(this.#keys, entry, options);
      this.#toRemove = this.#toRemove.filter((other) => other !== entry);
    }
    if (this.#unclear.any) {
      await this.#removeExtras(await this.#read(options), options);
      this.#unclear.searched();
    }
    // Without an own entry, there may be something else at this path.
    if (this.#last) this.#unused.add(this.path, until);
  }

  /** Reads the queue by quorum. */
  async #read(options: KeysCall): Promise<V2Queue> {
    const queue = await readQueue(this.#keys, this.path, { ...options, quorum: true });
    this.#unclear.existed(BigInt(queue.index));
    return queue;
  }

  /** Sets the TTL of the own entry to the whole seconds left. A lost entry is not created again. */
  async #expireAt(until: Deadline, own: V2OwnEntry, options: KeysCall): Promise<void> {
    const ttl = Math.max(1, Math.ceil(until.remaining / 1000));
    try {
      await this.#renewed(own, ttl, { ...options, attemptTimeout: HEDGE_REMOVAL_AFTER });
    } catch (error) {
      if (!(error instanceof EtcdClusterIdChanged)) throw error;
    }
    this.#expiry = undefined;
  }

  /** Stops the background removals, and takes over those of an earlier ticket with this value. */
  async #stopSettling(): Promise<void> {
    await stopped(this.#settling);
    const earlier = unsettled.get(this.#id);
    unsettled.delete(this.#id);
    if (!earlier || earlier === this) return;
    await stopped(earlier.#settling);
    this.#toRemove = [...this.#toRemove, ...earlier.#toRemove];
    earlier.#toRemove = [];
    this.#unclear.inherit(earlier.#unclear);
  }

  /** Repeats `#settle` in the background. Never call this during an append: the new key would be removed as an extra one. */
  #settleInBackground(): void {
    if (!this.#unsettledEntry && !this.#unclear.any) return;
    const stop = new Scope();
    const ended = detached(() =>
      this.#keepSettling(stop).catch((error) => debug('%s: keys not removed: %s', this.path, error)),
    );
    this.#settling = { ended, stop };
    unsettled.set(this.#id, this);
    // An append that was not answered: its key is not known, but its value is.
    const key = this.#unsettledEntry?.key ?? `${this.path}/? (value ${this.value})`;
    this.#keys.cleanups.add(key, ended);
  }

  async #keepSettling(signal: Source): Promise<void> {
    const { closing } = this.#keys.cleanups;
    // The TTLs count from now: a renewal may have been carried out although its answer was lost.
    const kept = this.#expiry && this.#entry;
    const unsettledEntries = kept ? [...this.#toRemove, kept] : this.#toRemove;
    const expired = latest([SEARCH_APPEND_FOR, ...unsettledEntries.map(({ granted }) => granted)]);
    let searched = false;
    /** Whether the last attempt failed with an error that retries will not fix, such as missing permissions. */
    let refused = false;
    const more = (hurried: boolean): boolean => {
      if (refused && expired.passed) return false;
      return this.#unsettledEntry !== undefined || (this.#unclear.any && !(searched && hurried));
    };
    const attempt = async (): Promise<void> => {
      const error = await failureOf(this.#settle({ signal, background: true }), signal);
      searched = error === undefined;
      if (searched) return;
      debug('%s: keys not removed yet: %s', this.path, error);
      refused = !mayPass(error);
    };
    try {
      const most = this.#unsettledEntry ? REMOVE_EVERY : READ_EVERY;
      await keepTrying(more, attempt, { most, closing, signal });
    } finally {
      if (unsettled.get(this.#id) === this) unsettled.delete(this.#id);
    }
  }

  /** An entry that is still to be removed or left to expire. */
  get #unsettledEntry(): V2OwnEntry | undefined {
    return this.#toRemove[0] ?? (this.#expiry && this.#entry);
  }

  get #id(): string {
    return `${this.path} ${this.value}`;
  }
}

/** Options for a read that searches for the own entry. Hedged early, because others may wait behind that entry. */
const searchOptions = (ttl: number | null, signal: Source | undefined): KeysCall => ({
  signal,
  attemptTimeout: hedgeReadAfter(ttl, false),
});

/** Whether less than a third of the TTL has passed since the last write, so that the entry need not be renewed yet. */
const isFresh = ({ granted, sentAt }: V2OwnEntry): boolean => granted === null || now() < sentAt + (granted * 1000) / 3;

function checkWidth(key: string): void {
  if (hasFullWidth(key)) return;
  throw new EtcdException(
    `etcd before 2.2 is not supported: it named an entry ${key}, and such names do not sort by number`,
  );
}

/** Returns the deadline at which the longest of these TTLs has passed. */
const latest = (ttls: readonly (number | null)[]): Deadline =>
  ttls.includes(null) ? Deadline.never : Deadline.after(Math.max(...ttls.map((ttl) => ttl ?? 0)));
