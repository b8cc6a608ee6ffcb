import { ignore, orAborted, Scope, type Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { EtcdClientClosed, EtcdException, EtcdLockExpired, mayPass } from '../../errors.ts';
import { keepTrying, type Running, STOPPED, stopped } from '../../pending-work.ts';
import type { LockMode } from '../../recipe/entry-value.ts';
import type {
  EnterOptions,
  Entry,
  RenewalOptions,
  Standing,
  StandingOptions,
  StoreCall,
  Ticket,
  TicketOptions,
} from '../../recipe/store.ts';
import { Deadline, now } from '../../time.ts';
import type { CallOptions, KeysApi } from '../keys-api.ts';
import { hasFullWidth } from '../paths.ts';
import { type AttemptLimits, adopted, append, remove, renew, type V2OwnEntry, verify } from './entry.ts';
import { readQueue, type V2Entry, type V2Queue } from './reading.ts';
import { Standings } from './standing.ts';
import {
  enterTimeout,
  hedgeReadAfter,
  hedgeRenewalAfter,
  LOOK_EVERY,
  LOOK_FOR_APPEND,
  REMOVE_EVERY,
} from './timing.ts';
import { UnclearAppends } from './unclear.ts';

const debug = createDebug('lock');

/**
 * Tickets of this process that still settle in the background, by lock and value. A later ticket with the same value takes
 * over their work, through whichever client: else its own entry would look like one of theirs.
 */
const unsettled = new Map<string, V2Ticket>();

/**
 * A {@link Ticket} on etcd v2: at most one entry, found again by its value, and given up without leaving a key behind.
 *
 * An append whose answer is lost may be committed at any later time. So each append is counted until its key has been seen:
 * before the next append the queue is read for it, every later listing removes further keys with our value, and so do
 * background reads after the entry was given up.
 */
export class V2Ticket implements Ticket {
  readonly path: string;
  readonly value: string;
  readonly #keys: KeysApi;
  readonly #mayExist: boolean;
  #entry: V2OwnEntry | undefined;
  #last: V2OwnEntry | undefined;
  #fresh: Promise<V2Queue | undefined> | undefined;
  #standings: Standings | undefined;
  #appending: Running | undefined;
  readonly #unclear = new UnclearAppends();
  /** Entries given up that may still be in the queue. */
  #owed: readonly V2OwnEntry[] = [];
  #settling: Running | undefined;

  constructor(keys: KeysApi, path: string, value: string, { mayExist = false }: TicketOptions = {}) {
    this.#keys = keys;
    this.path = path;
    this.value = value;
    this.#mayExist = mayExist;
  }

  get last(): V2OwnEntry | undefined {
    return this.#last;
  }

  async find(): Promise<V2OwnEntry | undefined> {
    await this.#stopSettling();
    try {
      return await this.#find({});
    } finally {
      this.#settleInBackground();
    }
  }

  async enter(ttl: number | null, { signal, failed }: EnterOptions): Promise<V2OwnEntry | undefined> {
    this.#standings?.end();
    this.#standings = undefined;
    await this.#stopSettling();
    if (this.#owed.length > 0) await this.#settle({ signal });
    const limits = { signal, attemptTimeout: enterTimeout(ttl, failed) };
    for (;;) {
      if (!this.#entry && (this.#mayExist || this.#unclear.any)) await this.#find(lookingFor(ttl, signal));
      const entry = this.#entry ? await this.#renewed(this.#entry, ttl, limits) : await this.#appended(ttl, limits);
      if (entry || !this.#entry) return entry;
    }
  }

  async standing(mode: LockMode, { signal, latest = false }: StandingOptions): Promise<Standing> {
    this.#standings ??= new Standings(this.#keys, {
      path: this.path,
      own: () => this.#own(),
      fresh: () => this.#takeFresh(),
      tidy: (queue, ending) => this.#tidy(queue, { signal: ending }),
    });
    if (latest) this.#standings.doubt();
    return this.#standings.read(mode, signal);
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

  async leave({ signal }: StoreCall = {}): Promise<void> {
    this.#standings?.end();
    await this.#stopSettling();
    await this.#endAppend(signal);
    if (this.#entry) this.#owed = [...this.#owed, this.#entry];
    this.#entry = undefined;
    try {
      await this.#settle({ signal, background: this.#keys.cleanups.closing.aborted });
    } finally {
      this.#settleInBackground();
    }
  }

  /** Returns the queue right after the append; once, and only if nothing has happened to our entry since. */
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
    return new EtcdLockExpired(`${this.path} has no entry with the value ${this.value}`);
  }

  #update(entry: V2OwnEntry): void {
    this.#entry = entry;
    this.#last = entry;
    this.#fresh = undefined;
  }

  /** Removes further keys with our value: of unclear appends, or of one that a proxy has sent twice. */
  async #tidy({ entries }: V2Queue, options: CallOptions): Promise<void> {
    for (const entry of entries)
      if (entry.value === this.value && entry.key !== this.#entry?.key) await this.#removeExtra(entry, options);
  }

  async #find(options: CallOptions): Promise<V2OwnEntry | undefined> {
    const queue = await readQueue(this.#keys, this.path, { ...options, quorum: true });
    const [first, ...further] = queue.withValue(this.value);
    for (const extra of further) await this.#removeExtra(extra, options);
    if (first && first.key !== this.#entry?.key) {
      checkWidth(first.key);
      this.#unclear.seen(first);
      this.#update(adopted(first, queue.clusterId));
    }
    // An entry owed until now is renewed next, so a removal under way is not carried out: it is bound to the old index.
    this.#owed = this.#owed.filter(({ key }) => key !== first?.key);
    return first && this.#entry;
  }

  /** The entry with a TTL that counts from now on; undefined when it is gone. */
  async #renewed(own: V2OwnEntry, ttl: number | null, limits: AttemptLimits): Promise<V2OwnEntry | undefined> {
    try {
      this.#update(await renew(this.#keys, own, ttl, limits));
    } catch (error) {
      if (!(error instanceof EtcdLockExpired)) throw error;
      this.#entry = undefined;
    }
    return this.#entry;
  }

  /** A new entry; undefined where an earlier append may have come before it, and our entry has to be renewed. */
  async #appended(ttl: number | null, { signal, attemptTimeout }: AttemptLimits): Promise<V2OwnEntry | undefined> {
    const stop = new Scope();
    const work = this.#append(ttl, { signal: stop, attemptTimeout });
    // Not aborted with the call: the answer names the key to remove.
    this.#appending = { ended: work.then(ignore, ignore), stop };
    const entry = await (signal ? orAborted(work, signal) : work);
    this.#appending = undefined;
    checkWidth(entry.key);
    if (!this.#unclear.any) return entry;
    const found = await this.#find(lookingFor(ttl, signal));
    return found === entry && isFresh(entry) ? entry : undefined;
  }

  async #append(ttl: number | null, limits: AttemptLimits): Promise<V2OwnEntry> {
    this.#unclear.sent(this.#last);
    try {
      const { entry, queue } = await append(this.#keys, this.path, this.value, ttl, limits);
      this.#unclear.answered(entry);
      this.#update(entry);
      this.#fresh = queue;
      return entry;
    } catch (error) {
      if (error instanceof EtcdException && !error.outcomeUnknown) this.#unclear.answered();
      throw error;
    }
  }

  /** Waits for an append under way to be answered, as long as the signal allows. */
  async #endAppend(signal: Source | undefined): Promise<void> {
    if (!this.#appending) return;
    const { ended, stop } = this.#appending;
    await (signal ? orAborted(ended, signal).catch(() => stop.abort(STOPPED)) : ended);
    await ended;
    this.#appending = undefined;
  }

  async #removeExtra(extra: V2Entry, options: CallOptions): Promise<void> {
    debug('%s: %s is a further entry of ours', this.path, extra.key);
    await remove(this.#keys, extra, options);
    if (extra.key !== this.#entry?.key) this.#unclear.seen(extra);
  }

  /** Removes the entries given up, and what an unclear append may have left. */
  async #settle(options: CallOptions): Promise<void> {
    for (const entry of this.#owed) {
      await remove(this.#keys, entry, options);
      this.#owed = this.#owed.filter((other) => other !== entry);
    }
    if (this.#unclear.any)
      await this.#tidy(await readQueue(this.#keys, this.path, { ...options, quorum: true }), options);
  }

  /** Ends background work, and takes over what an earlier ticket with this value left unsettled. */
  async #stopSettling(): Promise<void> {
    await stopped(this.#settling);
    const earlier = unsettled.get(this.#id);
    unsettled.delete(this.#id);
    if (!earlier || earlier === this) return;
    await stopped(earlier.#settling);
    this.#owed = [...this.#owed, ...earlier.#owed];
    earlier.#owed = [];
    this.#unclear.inherit(earlier.#unclear);
  }

  /** Continues in the background with what is left to settle. Never during an append: its key would look like a further one. */
  #settleInBackground(): void {
    if (this.#owed.length === 0 && !this.#unclear.any) return;
    const stop = new Scope();
    const ended = this.#keepSettling(stop).catch((error) => debug('%s: not settled: %s', this.path, error));
    this.#settling = { ended, stop };
    unsettled.set(this.#id, this);
    this.#keys.cleanups.add(this.#owed[0]?.key ?? this.path, ended);
  }

  async #keepSettling(signal: Source): Promise<void> {
    const { closing } = this.#keys.cleanups;
    const enough = Deadline.after(LOOK_FOR_APPEND);
    // Counted from now: a renewal may have been carried out though its answer never came.
    const expiry = latest([LOOK_FOR_APPEND, ...this.#owed.map(({ granted }) => granted)]);
    let looked = false;
    /** etcd answers, but refuses: nothing more can be done. */
    let refused = false;
    const more = (hurried: boolean): boolean => {
      if (refused && expiry.passed) return false;
      return this.#owed.length > 0 || (this.#unclear.any && !(looked && (hurried || enough.passed)));
    };
    const attempt = async (): Promise<void> => {
      looked = false;
      try {
        await this.#settle({ signal, background: true });
        looked = true;
      } catch (error) {
        if (signal.aborted || error instanceof EtcdClientClosed) throw error;
        debug('%s: still not settled: %s', this.path, error);
        refused = !mayPass(error);
      }
    };
    try {
      const most = this.#owed.length > 0 ? REMOVE_EVERY : LOOK_EVERY;
      await keepTrying(more, attempt, { most, closing, signal });
    } finally {
      if (unsettled.get(this.#id) === this) unsettled.delete(this.#id);
    }
  }

  get #id(): string {
    return `${this.path} ${this.value}`;
  }
}

/** How to read the queue for an entry of ours while others may wait behind it. */
const lookingFor = (ttl: number | null, signal: Source | undefined): CallOptions => ({
  signal,
  attemptTimeout: hedgeReadAfter(ttl, 'trouble'),
});

/** Whether an entry need not be renewed yet. */
const isFresh = ({ granted, sentAt }: V2OwnEntry): boolean => granted === null || now() < sentAt + (granted * 1000) / 3;

function checkWidth(key: string): void {
  if (hasFullWidth(key)) return;
  throw new EtcdException(`etcd before 2.2 cannot be used: it names our entry ${key}, and such names do not sort`);
}

/** When the longest of these TTLs is over. */
const latest = (ttls: readonly (number | null)[]): Deadline =>
  ttls.includes(null) ? Deadline.never : Deadline.after(Math.max(...ttls.map((ttl) => ttl ?? 0)));
