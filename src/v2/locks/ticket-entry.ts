import { createDebug } from '../../base/debug.ts';
import type { PendingWork } from '../../base/pending-work.ts';
import { Deadline, now } from '../../base/time.ts';
import { EtcdClusterIdChanged, EtcdException, EtcdLockExpired } from '../../errors.ts';
import { noEntry } from '../../recipe/entries/lost.ts';
import { HEDGE_REMOVAL_AFTER, REMOVE_EVERY, SEARCH_APPEND_FOR } from '../../recipe/entries/timing.ts';
import { isElsewhere, Settler, SettlersAtWork, type Unsettled } from '../../recipe/settler.ts';
import type { KeysApi, KeysCall, RenewOptions } from '../keys-api.ts';
import { hasFullWidth } from '../paths.ts';
import {
  duty,
  INITIAL,
  leavingIn,
  ownIn,
  step,
  type V2Duty,
  type V2EntryEvent,
  type V2EntryState,
  type V2OwnEntry,
} from './entry.ts';
import { announce, remove, renew } from './entry-requests.ts';
import { readQueue, type V2Entry, type V2Queue } from './reading.ts';
import { READ_EVERY } from './timing.ts';
import type { UnusedDirectories } from './unused-directories.ts';

const debug = createDebug('lock');

const atWork = new SettlersAtWork<V2TicketEntry>();

/** The entries of one ticket: holds their state, and makes the requests that find, renew and remove them. */
export class V2TicketEntry implements Unsettled {
  readonly keys: KeysApi;
  readonly path: string;
  readonly value: string;
  readonly settler = new Settler<V2TicketEntry>(this, atWork);
  readonly #unused: UnusedDirectories;
  #state: V2EntryState = INITIAL;

  constructor(keys: KeysApi, unused: UnusedDirectories, path: string, value: string) {
    this.keys = keys;
    this.#unused = unused;
    this.path = path;
    this.value = value;
  }

  get state(): V2EntryState {
    return this.#state;
  }

  get own(): V2OwnEntry | undefined {
    return ownIn(this.#state);
  }

  get id(): string {
    return `${this.path} ${this.value}`;
  }

  /** The key of an append that was not answered is not known, but its value is. */
  get key(): string {
    return leavingIn(this.#state)[0]?.key ?? `${this.path}/? (value ${this.value})`;
  }

  get clusterId(): string | undefined {
    return this.#state.last?.clusterId ?? this.keys.clusterId;
  }

  get pending(): PendingWork {
    return this.keys.cleanups;
  }

  get retryEvery(): number {
    return leavingIn(this.#state).length > 0 ? REMOVE_EVERY : READ_EVERY;
  }

  /** @throws {EtcdLockExpired} if there is no own entry */
  required(): V2OwnEntry {
    if (this.own) return this.own;
    throw noEntry(this.path, this.value);
  }

  apply(event: V2EntryEvent): void {
    this.#state = step(this.#state, event);
  }

  /** Takes over the first entry with the ticket's value, and removes the others. Resolves to undefined if there is none. */
  async find(options: KeysCall): Promise<V2OwnEntry | undefined> {
    const queue = await this.#read(options);
    const at = now();
    const [first, ...extras] = queue.withValue(this.value);
    for (const extra of extras) await this.#removeExtra(extra, options);
    if (first) checkWidth(first.key);
    if (first) this.apply({ is: 'found', first, clusterId: queue.clusterId });
    this.apply({ is: 'searched', index: queue.index, at });
    return first && this.own;
  }

  /** Removes extra keys with the own value: of appends with an unknown outcome, or of an append that a proxy sent twice. */
  async removeExtras({ entries }: V2Queue, options: KeysCall): Promise<void> {
    for (const entry of entries)
      if (entry.value === this.value && entry.key !== this.own?.key) await this.#removeExtra(entry, options);
  }

  /** Renews the own entry. @throws {EtcdLockExpired | EtcdClusterIdChanged} if it is lost */
  async renew(ttl: number | null, options: KeysCall & Pick<RenewOptions, 'timeout'>): Promise<V2OwnEntry> {
    return renew(this.keys, this.required(), ttl, options, this.#onUpdate);
  }

  /** Renews the own entry. Resolves to undefined if it is gone. */
  async renewIfPresent(ttl: number | null, options: KeysCall): Promise<V2OwnEntry | undefined> {
    try {
      return await this.renew(ttl, options);
    } catch (error) {
      if (!(error instanceof EtcdLockExpired)) throw error;
      this.apply({ is: 'forgotten' });
      return undefined;
    }
  }

  /** Writes the own entry again, so that its watchers get an event. */
  async announce(options: KeysCall): Promise<V2OwnEntry> {
    return announce(this.keys, this.required(), options, this.#onUpdate);
  }

  /** Stops the background removal, and takes over those of earlier tickets with the same value. */
  stopSettling(): Promise<void> {
    return this.settler.stop((earlier) => {
      // The entries of a cluster that was replaced are gone, but its last append may have been sent to the new one.
      const from = isElsewhere(earlier, this) ? { ...INITIAL, unclear: earlier.#state.unclear } : earlier.#state;
      this.apply({ is: 'inherited', from });
      earlier.apply({ is: 'takenOver' });
    });
  }

  hasDuty(isClosing: boolean): boolean {
    const due = duty(this.#state, now());
    return due !== undefined && !(due.is === 'search' && !due.isUrgent && isClosing);
  }

  /** Leaves the own entry to expire, removes the entries given up, and keys of appends with an unknown outcome. */
  async settle(options: KeysCall): Promise<void> {
    const { place } = this.#state;
    for (let due = duty(this.#state, now()); due; due = duty(this.#state, now())) {
      await this.#do(due, options);
      if (due.is === 'search') break;
    }
    // Without an own entry, there may be something else at this path.
    if (this.#state.last) this.#unused.add(this.path, place.is === 'expiring' ? place.until : undefined);
  }

  expiry(): () => boolean {
    // The TTLs count from now: a renewal may have been carried out although its answer was lost.
    const ttls = [
      SEARCH_APPEND_FOR,
      ...leavingIn(this.#state).map(({ granted }) => granted ?? Number.POSITIVE_INFINITY),
    ];
    const expired = Deadline.after(Math.max(...ttls));
    return () => expired.passed;
  }

  readonly #onUpdate = (own: V2OwnEntry): void => this.apply({ is: 'updated', own });

  async #do(due: V2Duty, options: KeysCall): Promise<void> {
    switch (due.is) {
      case 'expire':
        return this.#leaveToExpire(due.until, options);
      case 'remove':
        this.apply({ is: 'removing' });
        await remove(this.keys, due.entry, options);
        return this.apply({ is: 'removed', entry: due.entry });
      case 'search': {
        const queue = await this.#read(options);
        const at = now();
        await this.removeExtras(queue, options);
        this.apply({ is: 'searched', index: queue.index, at });
      }
    }
  }

  /** Sets the TTL of the own entry to the whole seconds left. A lost entry is not created again. */
  async #leaveToExpire(until: Deadline, options: KeysCall): Promise<void> {
    const ttl = Math.max(1, Math.ceil(until.remaining / 1000));
    try {
      await this.renewIfPresent(ttl, { ...options, attemptTimeout: HEDGE_REMOVAL_AFTER });
    } catch (error) {
      if (!(error instanceof EtcdClusterIdChanged)) throw error;
    }
    this.apply({ is: 'leftToExpire' });
  }

  async #removeExtra(extra: V2Entry, options: KeysCall): Promise<void> {
    debug('%s: removing %s, an extra key with the same value', this.path, extra.key);
    await remove(this.keys, extra, options);
    this.apply({ is: 'extraRemoved', extra });
  }

  /** Reads the queue by quorum. */
  #read(options: KeysCall): Promise<V2Queue> {
    return readQueue(this.keys, this.path, { ...options, quorum: true });
  }
}

export function checkWidth(key: string): void {
  if (hasFullWidth(key)) return;
  throw new EtcdException(
    `etcd before 2.2 is not supported: it named an entry ${key}, and such names do not sort by number`,
  );
}
