import type { Source } from '../../../base/cancellation.ts';
import { isNotCarriedOut, mayBeCarriedOut } from '../../../errors.ts';
import { isTwin } from '../../../recipe/entries/bridged-value.ts';
import { etcdError } from '../../../v2/error-codes.ts';
import type { V3Client } from '../../../v3/client.ts';
import { NotFound } from '../../../v3/gateway/errors.ts';
import type { GatewayCall } from '../../../v3/gateway/gateway.ts';
import type { Header } from '../../../v3/gateway/messages.ts';
import type { V3Entry } from '../../../v3/rpc/entry.ts';
import { isEntryOf } from '../../../v3/rpc/keys.ts';
import type { KeyListing } from '../../../v3/rpc/listings.ts';
import type { LeaseCounts } from '../lease-counts.ts';
import { RETRY_FOR, retried } from '../retry.ts';
import { type EntryKey, nameOf } from '../target.ts';
import { MOST_TRIES } from '../writes.ts';
import { BridgedLeases, isFirstLease, isOwnLease, type ReadyLease } from './leases.ts';

interface NewEntry {
  readonly key: string;
  readonly value: string;
  /** Seconds; null: the entry never expires. */
  readonly ttl: number | null;
}

interface NewlyCreated {
  readonly ready: ReadyLease;
  readonly own: V3Entry;
  readonly isNew: boolean;
  readonly isConfirmed: boolean;
}

/** Reads and writes the entries of clients of etcd v2 on etcd v3. No two entries have the same lease at the same time. */
export class BridgedEntries {
  readonly #client: V3Client;
  readonly #leases: BridgedLeases;
  /** Time limits of the requests that create an entry. */
  readonly #limits: GatewayCall;

  constructor(client: V3Client, leases: LeaseCounts) {
    this.#client = client;
    // If there is no other member to ask, only wait: python-etcd does not repeat a request that its server has answered with an error.
    const attemptTimeout = client.gateway.knowsOneMember ? 2 * RETRY_FOR : undefined;
    this.#limits = { timeout: RETRY_FOR, attemptTimeout };
    this.#leases = new BridgedLeases(client, leases);
  }

  /** Reads an entry. Linearizable. */
  async read({ path, rank }: EntryKey, options: GatewayCall): Promise<Header & { readonly own: V3Entry | undefined }> {
    const { entries, ...header } = await this.#client.requests.listings.createdAt(path, rank, options);
    return { ...header, own: entries.find(({ key }) => isEntryOf(path, key)) };
  }

  /**
   * Reads an entry for a client.
   * @throws {EtcdKeyNotFound} if the entry is gone
   */
  async find(at: EntryKey, options: GatewayCall): Promise<Header & { readonly own: V3Entry }> {
    for (;;) {
      const { own, ...header } = await this.read(at, options);
      if (!own) throw etcdError(100, `${at.path}/${nameOf(at.rank)}`, Number(header.revision));
      if (!(await this.#finish([own]))) return { ...header, own };
    }
  }

  /** Reads the entries below a path for a client, in the order of their keys. Linearizable. */
  async list(path: string, options: GatewayCall): Promise<KeyListing> {
    for (;;) {
      const listing = await this.#client.requests.listings.readPages(path, options);
      if (!(await this.#finish(listing.entries))) return listing;
    }
  }

  /**
   * Detaches entries from their first leases, because the append that has created them was not finished: a client may find its own
   * entry, and hold the lock with an entry that would expire. Resolves to whether there were any, so that they must be read again.
   * Only a bridge to both stores detaches a twin: the entry on v2 may be gone already.
   */
  async #finish(entries: readonly V3Entry[]): Promise<boolean> {
    const unfinished = entries.filter((entry) => isFirstLease(entry.lease) && !isTwin(entry));
    await Promise.all(unfinished.map((entry) => this.#move(entry, undefined)));
    return unfinished.length > 0;
  }

  /**
   * Creates an entry with a lease of its own. If it exists, renews it.
   * @param signal aborts when the client hangs up, for example while this process is suspended. Then no entry is created, because
   *   nobody would remove it.
   */
  async append(key: string, value: string, ttl: number | null, signal?: Source): Promise<V3Entry> {
    const unclear = new Set<ReadyLease>();
    const own = await retried(() => this.#appendOnce({ key, value, ttl }, unclear, signal), signal);
    // A request that is carried out late must find that its lease is gone.
    for (const ready of unclear) if (ready.lease.id !== own.lease) this.#leases.unused(ready);
    return own;
  }

  /**
   * Makes one attempt at {@link append}.
   * @param unclear gets the lease if the outcome of the append is unknown
   */
  async #appendOnce(
    { key, value, ttl }: NewEntry,
    unclear: Set<ReadyLease>,
    signal: Source | undefined,
  ): Promise<V3Entry> {
    for (;;) {
      const { ready, own, isNew, isConfirmed } = await this.#createNew({ key, value, ttl }, signal, unclear);
      if (isNew && isConfirmed && ttl !== null) return own;
      if (own.value !== value) throw etcdError(105, `${key} exists with another value`, 0);
      // Do not move an existing entry to this lease: this may be an old request, whose lease was granted long ago.
      const renewed = await this.#with(isNew ? ready : undefined, () => this.renew(own, ttl, false));
      if (renewed) return renewed;
    }
  }

  /**
   * Creates an entry with a lease of its own. If it exists, it stays as it is.
   * @param ttl null: creates it with a temporary lease; call {@link renew} at once to make it permanent
   */
  async create(key: string, value: string, ttl: number | null): Promise<void> {
    const { own, isConfirmed } = await this.#createNew({ key, value, ttl });
    if (!isConfirmed) await this.renew(own, ttl, false);
  }

  /**
   * Creates an entry with a lease of its own; with another one if the lease has ended since it was kept alive. See {@link #create}.
   * @param unclear gets the lease if the outcome is unknown
   */
  async #createNew(entry: NewEntry, signal?: Source, unclear?: Set<ReadyLease>): Promise<NewlyCreated> {
    for (let tries = 1; ; tries += 1) {
      // Always with a lease: a request that is carried out late, after the removal of the entry, must find that its lease is gone.
      const ready = await this.#leases.forNew(entry.key, entry.ttl, this.#limits);
      // This process may have been suspended: let the event loop notice that the client has hung up.
      await new Promise(setImmediate);
      if (signal?.aborted) {
        this.#leases.unused(ready);
        throw signal.reason;
      }
      try {
        return await this.#create(entry, ready);
      } catch (error) {
        if (mayBeCarriedOut(error)) unclear?.add(ready);
        if (!(error instanceof NotFound) || tries === MOST_TRIES) throw error;
      }
    }
  }

  /**
   * Creates an entry. Resolves to the entry with its key, and to whether it is the new one. Unless `isConfirmed`, it may expire early: it
   * must be renewed.
   */
  async #create({ key, value, ttl }: NewEntry, ready: ReadyLease): Promise<NewlyCreated> {
    let unanswered = 0;
    const appended = await this.#with(ready, () =>
      this.#client.requests.entries.append(key, {
        value,
        lease: ready.lease.id,
        whole: false,
        ...this.#limits,
        onSent: () => {
          unanswered += 1;
        },
        onAnswered: () => {
          unanswered -= 1;
        },
      }),
    );
    const { own } = appended;
    const isNew = own.lease === ready.lease.id;
    if (!isNew) this.#leases.unused(ready);
    else if (ttl !== null && unanswered === 0) this.#leases.created(own, ready);
    return { ready, own, isNew, isConfirmed: !isNew || ready.lease.isConfirmedBy(appended) };
  }

  /**
   * Renews an entry, with the same TTL or another one. Resolves to undefined if the entry is gone or has changed.
   * @param writes whether to write the entry even if its lease stays: requests that expect its last revision then fail, however late
   *   they are carried out
   * @param signal ends the renewal before the entry is moved to another lease. Not later: one of the two leases has to be revoked
   */
  async renew(own: V3Entry, ttl: number | null, writes: boolean, signal?: Source): Promise<V3Entry | undefined> {
    const { requests } = this.#client;
    if (ttl !== null && isOwnLease(own.lease) && (await requests.leases.grantedTo(own.lease, { signal })) === ttl) {
      try {
        const { entries } = await requests.leases.renew(own.lease, [own.key], { signal });
        const present = entries.get(own.key);
        // The entry may have been moved to another lease since it was read.
        if (present?.rank !== own.rank || present.lease !== own.lease) return undefined;
        if (!writes) return present;
        // After the keep-alive: whoever has read the entry before that write must not shorten its TTL.
        const { moved } = await requests.entries.move(own.key, own, {});
        if (moved === undefined) return undefined;
        const written = { ...present, modified: moved };
        this.#leases.written(written);
        return written;
      } catch (error) {
        if (error instanceof NotFound) return undefined;
        throw error;
      }
    }
    signal?.throwIfAborted();
    return this.#move(own, ttl === null ? undefined : await this.#leases.grant(ttl));
  }

  /**
   * Moves an entry to another lease, or to none. Resolves to undefined if the entry is gone or has changed: the lease is then revoked.
   */
  async #move(own: V3Entry, lease: string | undefined): Promise<V3Entry | undefined> {
    const { value, rank, modified } = own;
    const target = { value, rank, modified, lease };
    const move = this.#client.requests.entries.move(own.key, target, {});
    const { moved } = await move.catch((error: unknown) => {
      if (isNotCarriedOut(error)) this.#leases.end(lease);
      throw error;
    });
    if (moved === undefined) {
      this.#leases.end(lease);
      return undefined;
    }
    this.#leases.detached(own);
    return { ...own, lease, modified: moved };
  }

  /** Returns an entry as this bridge has last written it, if it has created it and remembers that. It may have changed or be gone. */
  remembered({ path, rank }: EntryKey): V3Entry | undefined {
    const own = this.#leases.remembered(rank);
    return own && isEntryOf(path, own.key) ? own : undefined;
  }

  /**
   * Removes an entry unless its value has changed.
   * @param unwritten whether to keep an entry that was written since it was read
   */
  async remove(own: V3Entry, unwritten = false): Promise<Header & { readonly isRemoved: boolean }> {
    const { entries } = this.#client.requests;
    const { key, value, rank, modified } = own;
    const unchanged = await entries.remove(key, { value, rank, modified }, {});
    if (unchanged.isRemoved) this.#leases.detached(own);
    if (unchanged.isRemoved || unwritten) return unchanged;
    const { own: present } = await entries.get(key, {});
    // Written since, and perhaps moved to another lease; or gone, perhaps by an earlier attempt of this call.
    const isGone = present?.rank !== rank;
    const removal = isGone || present.value !== value ? unchanged : await entries.remove(key, { value, rank }, {});
    if (isGone || removal.isRemoved) this.#leases.gone(own);
    return removal;
  }

  /**
   * Sends a request that creates an entry with a lease. Revokes the lease if the request was certainly not carried out. Otherwise the
   * lease may have the entry, and the client may repeat the request at another bridge.
   */
  async #with<T>(ready: ReadyLease | undefined, request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      if (ready && isNotCarriedOut(error)) this.#leases.unused(ready);
      throw error;
    }
  }
}
