import createDebug from 'debug';
import { EtcdException, EtcdLockExpired, isTransient } from '../errors.ts';
import type { CallOptions, KeysApi } from '../keys/api.ts';
import { hasFullWidth } from '../keys/paths.ts';
import { Backoff, Deadline, orAborted, pause } from '../timing.ts';
import { append, type Place, placeOf, remove, renew } from './entry.ts';
import { type Contender, type Queue, readQueue, withValue } from './queue.ts';

const debug = createDebug('etcd-v2-lock:lock');

/** Calls again while the failure is one that passes; for how long, the caller decides. */
export type Persist = <T>(call: () => Promise<T>) => Promise<T>;

/** Looks in the background for a key whose append was never answered: over more than the 7 s in which etcd gives up on it. */
const LOOKS = 5;

/** Work that goes on while nobody awaits it. */
interface Running {
  readonly ended: Promise<void>;
  readonly stop: AbortController;
}

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
  #appending: Running | undefined;
  /** Appends whose outcome is unknown, less the keys seen since. */
  #unclear = 0;
  /** A place given up that may still be in the queue. */
  #owed: Place | undefined;
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

  /** Notes what a renewal made of our place. */
  update(place: Place): void {
    this.#place = place;
    this.#last = place;
  }

  /** Takes over the place that stands in the queue under our uuid, if there is one: the lowest, as read by quorum. */
  async find(options: CallOptions): Promise<Place | undefined> {
    const queue = await readQueue(this.#keys, this.path, { ...options, quorum: true });
    const [lowest, ...further] = withValue(queue, this.uuid);
    for (const extra of further) await this.#removeExtra(extra, options);
    if (lowest && lowest.key !== this.#place?.key) {
      this.#seen();
      this.update(placeOf(lowest, queue.clusterId));
    }
    return lowest && this.#place;
  }

  /** A place whose TTL counts from now on: the one we have, one found under our uuid, or a new one at the end. */
  async take(ttl: number | null, signal: AbortSignal, persist: Persist): Promise<Place> {
    await stopped(this.#settling);
    if (this.#owed) await persist(() => this.#settle({ signal }));
    return persist(async () => {
      for (;;) {
        if (!this.#place && (this.#chosen || this.#unclear > 0)) await this.find({ signal });
        const place = this.#place ? await this.#renewed(this.#place, ttl, signal) : await this.#appended(ttl, signal);
        if (place) return place;
      }
    });
  }

  /** Removes further keys with our uuid, as long as there may be some. */
  async tidy(queue: Queue, options: CallOptions): Promise<void> {
    if (!this.#chosen && this.#unclear === 0) return;
    for (const entry of withValue(queue, this.uuid))
      if (entry.key !== this.#place?.key) await this.#removeExtra(entry, options);
  }

  /**
   * Gives the place up. Resolves once it is surely not in the queue. Rejects when etcd could not be reached or the signal
   * aborts; the removal then goes on in the background until the TTL has passed.
   */
  async leave(signal?: AbortSignal): Promise<void> {
    await stopped(this.#settling);
    await this.#endAppend(signal);
    this.#owed = this.#place ?? this.#owed;
    this.#place = undefined;
    try {
      await this.#settle({ signal, background: this.#keys.cleanups.closing.aborted });
    } finally {
      if (this.#owed || this.#unclear > 0) this.#settleInBackground();
    }
  }

  /** The place with a TTL that counts from now on; undefined when it is gone. */
  async #renewed(place: Place, ttl: number | null, signal: AbortSignal): Promise<Place | undefined> {
    try {
      this.update(await renew(this.#keys, place, ttl, { signal }));
    } catch (error) {
      if (!(error instanceof EtcdLockExpired)) throw error;
      this.#place = undefined;
    }
    return this.#place;
  }

  /** A new place; undefined where an earlier append may have come before it, and our place has to be renewed. */
  async #appended(ttl: number | null, signal: AbortSignal): Promise<Place | undefined> {
    const stop = new AbortController();
    const work = this.#append(ttl, stop.signal);
    // Not broken off with the call: the answer tells which key to remove.
    this.#appending = { ended: work.then(ignore, ignore), stop };
    const place = await orAborted(work, signal);
    if (!hasFullWidth(place.key))
      throw new EtcdException(
        `etcd before 2.2 cannot be used: it names our entry ${place.key}, and such names do not sort`,
      );
    if (this.#unclear === 0) return place;
    await this.find({ signal });
    return undefined;
  }

  async #append(ttl: number | null, signal: AbortSignal): Promise<Place> {
    this.#unclear += 1;
    try {
      const place = await append(this.#keys, this.path, this.uuid, ttl, { signal });
      this.#seen();
      this.update(place);
      return place;
    } catch (error) {
      if (error instanceof EtcdException && !error.outcomeUnknown) this.#seen();
      throw error;
    }
  }

  /** Waits for an append under way to be answered, as long as the signal allows. */
  async #endAppend(signal: AbortSignal | undefined): Promise<void> {
    if (!this.#appending) return;
    const { ended, stop } = this.#appending;
    await (signal ? orAborted(ended, signal).catch(() => stop.abort()) : ended);
    await ended;
    this.#appending = undefined;
  }

  #seen(): void {
    this.#unclear = Math.max(0, this.#unclear - 1);
  }

  async #removeExtra({ key, value, modifiedIndex }: Contender, options: CallOptions): Promise<void> {
    debug('%s: %s is one key of ours too many', this.path, key);
    await remove(this.#keys, { key, uuid: value, modifiedIndex }, options);
    if (key !== this.#place?.key) this.#seen();
  }

  /** Removes the place given up, and what an unclear append may have left. */
  async #settle(options: CallOptions): Promise<void> {
    if (this.#owed) await remove(this.#keys, this.#owed, options);
    this.#owed = undefined;
    if (this.#unclear > 0)
      await this.tidy(await readQueue(this.#keys, this.path, { ...options, quorum: true }), options);
  }

  #settleInBackground(): void {
    const stop = new AbortController();
    const ended = this.#goOnSettling(stop.signal).catch((error) => debug('%s: not settled: %s', this.path, error));
    this.#settling = { ended, stop };
    this.#keys.cleanups.add(this.#owed?.key ?? this.path, ended);
  }

  async #goOnSettling(signal: AbortSignal): Promise<void> {
    const { closing } = this.#keys.cleanups;
    const { ttl = null, sentAt = 0 } = this.#owed ?? {};
    const expiry = ttl === null ? Deadline.never : new Deadline(sentAt + ttl * 1000);
    const backoff = new Backoff({ first: 500, most: 8000 });
    for (let looks = 1; this.#owed ? !expiry.passed : this.#unclear > 0 && looks < LOOKS; ) {
      // Closing cuts the first pause after it short: there is little time left.
      await pause(backoff.next(), signal, ...(closing.aborted ? [] : [closing]));
      if (signal.aborted) return;
      try {
        await this.#settle({ signal, background: true });
        looks = closing.aborted ? LOOKS : looks + 1;
      } catch (error) {
        if (!isTransient(error)) throw error;
      }
    }
  }
}

function ignore(): void {}

async function stopped(running: Running | undefined): Promise<void> {
  running?.stop.abort();
  await running?.ended;
}
