import { randomBytes } from 'node:crypto';
import type { Source } from '../../../base/cancellation.ts';
import { Deadline } from '../../../base/time.ts';
import { EtcdException } from '../../../errors.ts';
import { isTwin } from '../../../recipe/entries/bridged-value.ts';
import { etcdError } from '../../../v2/error-codes.ts';
import type { V3Client } from '../../../v3/client.ts';
import { NotFound } from '../../../v3/gateway/errors.ts';
import type { GatewayCall } from '../../../v3/gateway/gateway.ts';
import { enterTimeout } from '../../../v3/locks/timing.ts';
import type { Stamp, V3Entry } from '../../../v3/rpc/entry.ts';
import { isEntryOf } from '../../../v3/rpc/keys.ts';
import type { KeyListing } from '../../../v3/rpc/listings.ts';
import type { LeaseCounts } from '../lease-counts.ts';
import { RETRY_FOR, retried } from '../retry.ts';
import { type EntryKey, nameOf } from '../target.ts';

/**
 * The highest bits of the ids of leases that a bridge has created, each for one entry. A bridge revokes only such leases, because
 * other leases may have several entries. This package's own clients never choose such an id.
 */
const OWN_LEASES = 0x2b715cn;
/** The highest bits of the ids of temporary leases: an entry that never expires is created with one, and then detached from it. */
const FIRST_LEASES = 0x2b715dn;

const freshLease = (kind: bigint): string => String((kind << 40n) | BigInt(`0x${randomBytes(5).toString('hex')}`));
const isOf = (kind: bigint, lease: string): boolean => BigInt(lease) >> 40n === kind;
const isOwnLease = (lease: string | undefined): lease is string =>
  lease !== undefined && (isOf(OWN_LEASES, lease) || isOf(FIRST_LEASES, lease));
const isFirstLease = (lease: string | undefined): boolean => lease !== undefined && isOf(FIRST_LEASES, lease);

/** TTL in seconds with which an entry that never expires is created. The entry is then detached from its lease. */
const FIRST_TTL = 60;

/** Seconds for which a bridge tries to revoke a lease. If that fails, the lease expires. */
const END_LEASES_FOR = 600;

/** Reads and writes the entries of clients of etcd v2 on etcd v3. Each entry with a TTL has a lease of its own. */
export class BridgedEntries {
  readonly #client: V3Client;
  readonly #leases: LeaseCounts;
  /** Seconds to wait for the answer to an append before the next member is asked. */
  readonly #attemptTimeout: number;

  constructor(client: V3Client, leases: LeaseCounts) {
    this.#client = client;
    // If there is no next member, wait: python-etcd does not repeat a request that its server has answered with an error.
    this.#attemptTimeout = client.gateway.knowsOneMember ? RETRY_FOR : enterTimeout(0);
    this.#leases = leases;
  }

  /** Reads an entry. Linearizable. */
  async read({ path, rank }: EntryKey, options: GatewayCall): Promise<Stamp & { readonly own: V3Entry | undefined }> {
    const { entries, ...stamp } = await this.#client.requests.listings.createdAt(path, rank, options);
    return { ...stamp, own: entries.find(({ key }) => isEntryOf(path, key)) };
  }

  /**
   * Reads an entry for a client.
   * @throws {EtcdKeyNotFound} if the entry is gone
   */
  async find(at: EntryKey, options: GatewayCall): Promise<Stamp & { readonly own: V3Entry }> {
    for (;;) {
      const { own, ...stamp } = await this.read(at, options);
      if (!own) throw etcdError(100, `${at.path}/${nameOf(at.rank)}`, Number(stamp.revision));
      if (!(await this.#finish([own]))) return { ...stamp, own };
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
    const unclear = new Set<string>();
    const own = await retried(() => this.#appendOnce({ key, value, ttl }, unclear, signal), signal);
    // A request that is carried out late must find that its lease is gone.
    for (const lease of unclear) if (lease !== own.lease) this.#end(lease);
    return own;
  }

  /**
   * Makes one attempt at {@link append}.
   * @param unclear gets the lease if the outcome of the append is unknown
   */
  async #appendOnce(
    { key, value, ttl }: { readonly key: string; readonly value: string; readonly ttl: number | null },
    unclear: Set<string>,
    signal: Source | undefined,
  ): Promise<V3Entry> {
    for (;;) {
      // Always with a lease: a request that is carried out late, after the removal of the entry, must find that its lease is gone.
      const lease = await this.#grantFirst(ttl);
      // This process may have been suspended: let the event loop notice that the client has hung up.
      await new Promise(setImmediate);
      if (signal?.aborted) {
        this.#end(lease);
        throw signal.reason;
      }
      const own = await this.#create(key, value, lease).catch((error: unknown) => {
        if (error instanceof EtcdException && error.outcomeUnknown) unclear.add(lease);
        throw error;
      });
      const isNew = own.lease === lease;
      if (isNew && ttl !== null) return own;
      if (!isNew) this.#end(lease);
      if (own.value !== value) throw etcdError(105, `${key} exists with another value`, 0);
      // Do not move an existing entry to this lease: this may be an old request, whose lease was granted long ago.
      const renewed = await this.#with(isNew ? lease : undefined, () => this.renew(own, ttl, false));
      if (renewed) return renewed;
    }
  }

  /**
   * Creates an entry with a lease of its own. If it exists, it stays as it is.
   * @param ttl null: creates it with {@link FIRST_TTL}; call {@link renew} within that time to make it permanent
   */
  async create(key: string, value: string, ttl: number | null): Promise<void> {
    const lease = await this.#grantFirst(ttl);
    const own = await this.#create(key, value, lease);
    if (own.lease !== lease) this.#end(lease);
  }

  async #create(key: string, value: string, lease: string): Promise<V3Entry> {
    const own = { value, lease, whole: false, attemptTimeout: this.#attemptTimeout };
    return (await this.#with(lease, () => this.#client.requests.entries.append(key, own))).own;
  }

  /**
   * Renews an entry, with the same TTL or another one. Resolves to undefined if the entry is gone or has changed.
   * @param writes whether to write the entry even if its lease stays: requests that expect its last revision then fail, however late
   *   they are carried out
   * @param signal ends the renewal before the entry is moved to another lease. Not later: one of the two leases has to be revoked
   */
  async renew(own: V3Entry, ttl: number | null, writes: boolean, signal?: Source): Promise<V3Entry | undefined> {
    const { requests } = this.#client;
    const mayStay = isOwnLease(own.lease) && !isFirstLease(own.lease) && ttl !== null;
    if (mayStay && (await requests.leases.grantedTo(own.lease, { signal })) === ttl) {
      try {
        const { entries } = await requests.leases.renew(own.lease, [own.key], { signal });
        const present = entries.get(own.key);
        // The entry may have been moved to another lease since it was read.
        if (present?.rank !== own.rank || present.lease !== own.lease) return undefined;
        if (!writes) return present;
        // After the keep-alive: whoever has read the entry before that write must not shorten its TTL.
        const { moved } = await requests.entries.move(own.key, own, {});
        return moved === undefined ? undefined : { ...present, modified: moved };
      } catch (error) {
        if (error instanceof NotFound) return undefined;
        throw error;
      }
    }
    signal?.throwIfAborted();
    return this.#move(own, ttl === null ? undefined : await this.#grant(ttl));
  }

  /**
   * Moves an entry to another lease, or to none. Revokes its previous lease if a bridge created that lease. Resolves to undefined if
   * the entry is gone or has changed.
   */
  async #move(own: V3Entry, lease: string | undefined): Promise<V3Entry | undefined> {
    const { value, rank, modified } = own;
    const target = { value, rank, modified, lease };
    const { moved } = await this.#with(lease, () => this.#client.requests.entries.move(own.key, target, {}));
    this.#end(moved === undefined ? lease : own.lease);
    return moved === undefined ? undefined : { ...own, lease, modified: moved };
  }

  /** @param ttl null: the entry is to have no lease */
  #grantFirst(ttl: number | null): Promise<string> {
    return ttl === null ? this.#grant(FIRST_TTL, FIRST_LEASES) : this.#grant(ttl);
  }

  async #grant(ttl: number, kind = OWN_LEASES): Promise<string> {
    const lease = freshLease(kind);
    await this.#client.requests.leases.grant(lease, ttl, {});
    this.#leases.granted += 1;
    return lease;
  }

  /**
   * Removes an entry unless its value has changed. If the entry is gone, revokes its lease if a bridge created that lease.
   * @param unwritten whether to keep an entry that was written since it was read
   */
  async remove(
    { key, value, rank, modified, lease }: V3Entry,
    unwritten = false,
  ): Promise<Stamp & { readonly isRemoved: boolean }> {
    const { requests } = this.#client;
    const removal = await requests.entries.remove(key, { value, rank, modified: unwritten ? modified : undefined }, {});
    // Not removed: the entry is gone already, perhaps by an earlier attempt of this call, or has changed and needs its lease.
    const isGone = removal.isRemoved || (await requests.entries.get(key, {})).own?.rank !== rank;
    if (isGone) this.#end(lease);
    return removal;
  }

  /** Sends a request that attaches an entry to a lease. Revokes the lease if the request was certainly not carried out. */
  async #with<T>(lease: string | undefined, request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      // If the outcome is unknown, the lease may have the entry, and the client may repeat the request at another bridge.
      if (error instanceof EtcdException && !error.outcomeUnknown) this.#end(lease);
      throw error;
    }
  }

  /** Revokes a lease without entries, in the background, if a bridge created it. If that fails, the lease expires. */
  #end(lease: string | undefined): void {
    if (!isOwnLease(lease)) return;
    this.#leases.ended += 1;
    this.#client.leases.addRevocation(this.#client.requests.leases.revokeUntil(lease, Deadline.after(END_LEASES_FOR)));
  }
}
