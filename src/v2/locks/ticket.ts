import { ignore, orAborted, Scope, type Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { EtcdClientClosed, EtcdException, EtcdLockExpired, mayPass } from '../../errors.ts';
import type { Persist } from '../../recipe/attempt.ts';
import { keepTrying, type Running, STOPPED, stopped } from '../../recipe/background.ts';
import { Deadline, now } from '../../time.ts';
import type { CallOptions, KeysApi } from '../keys-api.ts';
import { hasFullWidth } from '../paths.ts';
import { type AttemptLimits, append, type Place, placeOf, remove, renew, takingAttempt } from './entry.ts';
import { type Contender, type Queue, readQueue, withValue } from './queue.ts';
import { UnclearAppends } from './unclear.ts';
import { patience } from './wait.ts';

const debug = createDebug('lock');

/**
 * Seconds to look, in the background, for the key of an append that was never answered: until then, and once more after it.
 * However short its TTL: that counts from the moment a member carries the append out, and one that was stopped may do so late.
 */
const LOOK_FOR = 120;
/** Seconds between two attempts to remove a key, at most: others wait for it, once an outage is over. */
const REMOVE_EVERY = 2;
/** Seconds between two looks for a key that there may never be, at most. */
const LOOK_EVERY = 4;

export interface TakeOptions {
  readonly signal: Source;
  readonly persist: Persist;
  /** Called when the place we had turned out to be gone, before another is taken. */
  readonly onGone: () => void;
}

/**
 * Claims of this process that go on settling in the background, by lock and identity. A later claim of the same identity
 * takes that over, through whichever client: else its key would look like one too many.
 */
const unsettled = new Map<string, Claim>();

/**
 * One identity's claim on one lock: at most one place in its queue, made once, found again by its uuid, and given up
 * without leaving a key behind.
 *
 * An append whose answer is lost may be committed at any later time. So each is counted until its key has been seen:
 * before the next append we look for it, every later listing removes what is more than our place, and so do further
 * looks after the place was given up.
 *
 * Not for concurrent use: its owner makes one call at a time.
 */
export class Claim {
  readonly path: string;
  readonly uuid: string;
  readonly #keys: KeysApi;
  /** Whether a key with this uuid may be there that this object did not make. */
  readonly #chosen: boolean;
  #place: Place | undefined;
  #last: Place | undefined;
  #fresh: Promise<Queue | undefined> | undefined;
  #appending: Running | undefined;
  readonly #unclear = new UnclearAppends();
  /** Places given up that may still be in the queue. */
  #owed: readonly Place[] = [];
  #settling: Running | undefined;

  constructor(keys: KeysApi, path: string, uuid: string, chosen: boolean) {
    this.#keys = keys;
    this.path = path;
    this.uuid = uuid;
    this.#chosen = chosen;
  }

  /** Our place in the queue, as far as we know. */
  get place(): Place | undefined {
    return this.#place;
  }

  /** The last place, also after it was given up. */
  get last(): Place | undefined {
    return this.#last;
  }

  /** The queue as it was right after our place was taken; told once, and only where nothing has happened to our place since. */
  async fresh(): Promise<Queue | undefined> {
    const queue = this.#fresh;
    this.#fresh = undefined;
    return queue;
  }

  /** Notes what a renewal made of our place. */
  update(place: Place): void {
    this.#place = place;
    this.#last = place;
    this.#fresh = undefined;
  }

  /** Takes over the place that stands in the queue under our uuid, if there is one: the lowest, as read by quorum. */
  async adopt(): Promise<Place | undefined> {
    await this.#stopSettling();
    try {
      return await this.#find({});
    } finally {
      this.#settleInBackground();
    }
  }

  /** A place whose TTL counts from now on: the one we have, one found under our uuid, or a new one at the end. */
  async take(ttl: number | null, { signal, persist, onGone }: TakeOptions): Promise<Place> {
    await this.#stopSettling();
    if (this.#owed.length > 0) await persist(() => this.#settle({ signal }));
    return persist(async (failed) => {
      const how = { signal, attemptTimeout: takingAttempt(ttl, failed) };
      for (;;) {
        if (!this.#place && (this.#chosen || this.#unclear.any)) await this.#find(looking(ttl, signal));
        const place = this.#place ? await this.#renewed(this.#place, ttl, how) : await this.#appended(ttl, how);
        if (place) return place;
        if (!this.#place) onGone();
      }
    });
  }

  /** Removes further keys with our uuid: of unclear appends, or of one that a proxy has sent twice. */
  async tidy({ entries }: Queue, options: CallOptions): Promise<void> {
    for (const entry of entries)
      if (entry.value === this.uuid && entry.key !== this.#place?.key) await this.#removeExtra(entry, options);
  }

  /**
   * Gives the place up. Resolves once it is surely not in the queue. Rejects when etcd could not be reached or the signal
   * aborts; the removal is then retried in the background until it succeeds.
   */
  async leave(signal?: Source): Promise<void> {
    await this.#stopSettling();
    await this.#endAppend(signal);
    if (this.#place) this.#owed = [...this.#owed, this.#place];
    this.#place = undefined;
    try {
      await this.#settle({ signal, background: this.#keys.cleanups.closing.aborted });
    } finally {
      this.#settleInBackground();
    }
  }

  async #find(options: CallOptions): Promise<Place | undefined> {
    const queue = await readQueue(this.#keys, this.path, { ...options, quorum: true });
    const [lowest, ...further] = withValue(queue, this.uuid);
    for (const extra of further) await this.#removeExtra(extra, options);
    if (lowest && lowest.key !== this.#place?.key) {
      checkWidth(lowest.key);
      this.#unclear.seen(lowest);
      this.update(placeOf(lowest, queue.clusterId));
    }
    // One owed until now is renewed next, which keeps a removal that is still under way from being carried out.
    this.#owed = this.#owed.filter(({ key }) => key !== lowest?.key);
    return lowest && this.#place;
  }

  /** The place with a TTL that counts from now on; undefined when it is gone. */
  async #renewed(place: Place, ttl: number | null, how: AttemptLimits): Promise<Place | undefined> {
    try {
      this.update(await renew(this.#keys, place, ttl, how));
    } catch (error) {
      if (!(error instanceof EtcdLockExpired)) throw error;
      this.#place = undefined;
    }
    return this.#place;
  }

  /** A new place; undefined where an earlier append may have come before it, and our place has to be renewed. */
  async #appended(ttl: number | null, { signal, attemptTimeout }: AttemptLimits): Promise<Place | undefined> {
    const stop = new Scope();
    const work = this.#append(ttl, { signal: stop, attemptTimeout });
    // Not broken off with the call: the answer tells which key to remove.
    this.#appending = { ended: work.then(ignore, ignore), stop };
    const place = await orAborted(work, signal);
    this.#appending = undefined;
    checkWidth(place.key);
    if (!this.#unclear.any) return place;
    const found = await this.#find(looking(ttl, signal));
    return found === place && isFresh(place) ? place : undefined;
  }

  async #append(ttl: number | null, how: AttemptLimits): Promise<Place> {
    this.#unclear.sent(this.#last);
    try {
      const { place, queue } = await append(this.#keys, this.path, this.uuid, ttl, how);
      this.#unclear.answered(place);
      this.update(place);
      this.#fresh = queue;
      return place;
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

  async #removeExtra(extra: Contender, options: CallOptions): Promise<void> {
    const { key, value, modifiedIndex } = extra;
    debug('%s: %s is one key of ours too many', this.path, key);
    await remove(this.#keys, { key, uuid: value, modifiedIndex }, options);
    if (key !== this.#place?.key) this.#unclear.seen(extra);
  }

  /** Removes the places given up, and what an unclear append may have left. */
  async #settle(options: CallOptions): Promise<void> {
    for (const place of this.#owed) {
      await remove(this.#keys, place, options);
      this.#owed = this.#owed.filter((other) => other !== place);
    }
    if (this.#unclear.any)
      await this.tidy(await readQueue(this.#keys, this.path, { ...options, quorum: true }), options);
  }

  /** Ends what goes on in the background, and takes over what an earlier claim of this identity left unsettled. */
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

  /** Goes on with what is left to settle, if anything. Not while an append is made: its key would look like one too many. */
  #settleInBackground(): void {
    if (this.#owed.length === 0 && !this.#unclear.any) return;
    const stop = new Scope();
    const ended = this.#goOnSettling(stop).catch((error) => debug('%s: not settled: %s', this.path, error));
    this.#settling = { ended, stop };
    unsettled.set(this.#id, this);
    this.#keys.cleanups.add(this.#owed[0]?.key ?? this.path, ended);
  }

  async #goOnSettling(signal: Source): Promise<void> {
    const { closing } = this.#keys.cleanups;
    const enough = Deadline.after(LOOK_FOR);
    // Counted from now: a renewal may have been carried out though its answer never came.
    const expiry = latest([LOOK_FOR, ...this.#owed.map(({ ttl }) => ttl)]);
    let looked = false;
    /** etcd is there, but does not let us: nothing more can be done. */
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
    return `${this.path} ${this.uuid}`;
  }
}

/** How to look for a place while others may wait for us to know of it. */
const looking = (ttl: number | null, signal: Source): CallOptions => ({
  signal,
  attemptTimeout: patience(ttl, 'trouble'),
});

/** Whether it need not be renewed yet. */
const isFresh = ({ ttl, sentAt }: Place): boolean => ttl === null || now() < sentAt + (ttl * 1000) / 3;

function checkWidth(key: string): void {
  if (hasFullWidth(key)) return;
  throw new EtcdException(`etcd before 2.2 cannot be used: it names our entry ${key}, and such names do not sort`);
}

/** When the longest of these TTLs is over. */
const latest = (ttls: readonly (number | null)[]): Deadline =>
  ttls.includes(null) ? Deadline.never : Deadline.after(Math.max(...ttls.map((ttl) => ttl ?? 0)));
