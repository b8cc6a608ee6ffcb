import { randomBytes } from 'node:crypto';
import type { Source } from '../../../cancellation.ts';
import { EtcdException } from '../../../errors.ts';
import { Deadline } from '../../../time.ts';
import { etcdError } from '../../../v2/error-codes.ts';
import type { Made, V3Entry } from '../../../v3/answers.ts';
import type { CallOptions, V3Client } from '../../../v3/client.ts';
import { NotFound } from '../../../v3/errors.ts';
import { endLease } from '../../../v3/locks/lease-end.ts';
import { isDirectly } from '../../../v3/locks/reading.ts';
import type { LeaseCounts } from '../lease-counts.ts';
import { type EntryKey, nameOf } from '../target.ts';

/**
 * Which leases a bridge has made, for one entry each: the highest bits of their ids. Others may have further entries. This package's
 * own clients never choose such an id.
 */
const OWN_LEASES = 0x2b715cn;
const freshLease = (): string => String((OWN_LEASES << 40n) | BigInt(`0x${randomBytes(5).toString('hex')}`));
const isOwnLease = (lease: string | undefined): lease is string =>
  lease !== undefined && BigInt(lease) >> 40n === OWN_LEASES;

/** Seconds: the TTL of an entry that is about to be made one that never expires. */
const FIRST_TTL = 60;

/** Seconds for which a bridge tries to end a lease. It would also expire. */
const END_LEASES_FOR = 600;

/** The entries of clients of etcd v2, each with a lease of its own: how they are read and written. */
export class BridgedEntries {
  readonly #client: V3Client;
  readonly #leases: LeaseCounts;

  constructor(client: V3Client, leases: LeaseCounts) {
    this.#client = client;
    this.#leases = leases;
  }

  /** Reads an entry. Linearizable. */
  async read({ path, rank }: EntryKey, options: CallOptions): Promise<Made & { readonly own: V3Entry | undefined }> {
    const { entries, ...made } = await this.#client.requests.createdAt(path, rank, options);
    return { ...made, own: entries.find(({ key }) => isDirectly(path, key)) };
  }

  /** @throws {EtcdKeyNotFound} if the entry is gone */
  async find(at: EntryKey): Promise<Made & { readonly own: V3Entry }> {
    const { own, ...made } = await this.read(at, {});
    if (own) return { ...made, own };
    throw etcdError(100, `${at.path}/${nameOf(at.rank)}`, Number(made.revision));
  }

  /**
   * Creates an entry with a lease of its own. If it exists, renews it.
   * @param signal aborts when the client hangs up. A bridge that was stopped then creates no entry that nobody would remove.
   */
  async append(key: string, value: string, ttl: number | null, signal?: Source): Promise<V3Entry> {
    for (;;) {
      // Always with a lease: a request that is carried out late, after the removal of the entry, must find that its lease is gone.
      const lease = await this.#grant(ttl ?? FIRST_TTL);
      if (signal?.aborted) {
        this.#end(lease);
        throw signal.reason;
      }
      const own = await this.#create(key, value, lease);
      const isNew = own.lease === lease;
      if (isNew && ttl !== null) return own;
      if (!isNew) this.#end(lease);
      if (own.value !== value) throw etcdError(105, `${key} has another value`, 0);
      // An older request with the same value may only prolong its entry: not put it on a lease that was granted long ago.
      const renewed = await this.#with(isNew ? lease : undefined, () => this.renew(own, ttl));
      if (renewed) return renewed;
    }
  }

  /** Creates an entry with a lease of its own. If it exists, it stays as it is. */
  async create(key: string, value: string, ttl: number | null): Promise<void> {
    const lease = await this.#grant(ttl ?? FIRST_TTL);
    const own = await this.#create(key, value, lease);
    if (own.lease !== lease) this.#end(lease);
    else if (ttl === null) await this.renew(own, ttl);
  }

  async #create(key: string, value: string, lease: string): Promise<V3Entry> {
    const own = { value, lease, whole: false, unanswered: { count: 0 } };
    return (await this.#with(lease, () => this.#client.requests.append(key, own))).own;
  }

  /** Gives an entry its TTL again, or another one. Resolves to undefined if the entry is not the same any more. */
  async renew(own: V3Entry, ttl: number | null): Promise<V3Entry | undefined> {
    const { requests } = this.#client;
    if (isOwnLease(own.lease) && ttl !== null && (await requests.grantedTo(own.lease, {})) === ttl) {
      try {
        const { entries } = await requests.renew(own.lease, [own.key], {});
        const present = entries.get(own.key);
        return present?.rank === own.rank ? present : undefined;
      } catch (error) {
        if (error instanceof NotFound) return undefined;
        throw error;
      }
    }
    return this.#move(own, ttl === null ? undefined : await this.#grant(ttl));
  }

  /** Puts an entry on another lease, and ends the one that it had if a bridge made it. */
  async #move(own: V3Entry, lease: string | undefined): Promise<V3Entry | undefined> {
    const { value, rank, modified } = own;
    const target = { value, rank, modified, lease };
    const { moved } = await this.#with(lease, () => this.#client.requests.move(own.key, target, {}));
    this.#end(moved === undefined ? lease : own.lease);
    return moved === undefined ? undefined : { ...own, lease, modified: moved };
  }

  async #grant(ttl: number): Promise<string> {
    const lease = freshLease();
    await this.#client.requests.grant(lease, ttl, {});
    this.#leases.granted += 1;
    return lease;
  }

  /** Removes an entry if it is still the same. */
  async remove({ key, value, rank, lease }: V3Entry): Promise<Made & { readonly isRemoved: boolean }> {
    const removal = await this.#client.requests.remove(key, { value, rank }, {});
    this.#end(lease);
    return removal;
  }

  /** Makes a request that puts an entry on a lease, and ends the lease if the request was certainly not carried out. */
  async #with<T>(lease: string | undefined, request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      // Otherwise the entry may be on it, and its client may repeat the request at another bridge.
      if (error instanceof EtcdException && !error.outcomeUnknown) this.#end(lease);
      throw error;
    }
  }

  /** Ends a lease that a bridge made, in the background: it has no entry any more, so that it would also expire. */
  #end(lease: string | undefined): void {
    if (!isOwnLease(lease)) return;
    this.#leases.ended += 1;
    this.#client.leases.ends(endLease(this.#client, lease, Deadline.after(END_LEASES_FOR)));
  }
}
