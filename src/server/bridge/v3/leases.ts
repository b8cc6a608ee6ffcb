import { randomBytes } from 'node:crypto';
import { Deadline } from '../../../base/time.ts';
import type { V3Client } from '../../../v3/client.ts';
import { NotFound } from '../../../v3/gateway/errors.ts';
import type { GatewayCall } from '../../../v3/gateway/gateway.ts';
import type { EtcdLease } from '../../../v3/locks/leases/lease.ts';
import type { LeaseUser } from '../../../v3/locks/leases/lease-users.ts';
import type { V3Entry } from '../../../v3/rpc/entry.ts';
import type { LeaseCounts } from '../lease-counts.ts';

/**
 * The highest bits of the ids of leases that a bridge has created, each for one entry at a time. A bridge revokes only such leases,
 * because other leases may have several entries. This package's own clients never choose such an id, and bridges up to 0.3 do not know it:
 * they may revoke a lease that serves the next entry by now.
 */
const OWN_LEASES = 0x2b715en;
/** The highest bits of the ids of temporary leases: an entry that never expires is created with one, and then detached from it. */
const FIRST_LEASES = 0x2b715dn;

const freshId = (kind: bigint): string => String((kind << 40n) | BigInt(`0x${randomBytes(5).toString('hex')}`));
const isOf = (kind: bigint, lease: string): boolean => BigInt(lease) >> 40n === kind;

export const isFirstLease = (lease: string | undefined): boolean => lease !== undefined && isOf(FIRST_LEASES, lease);

/** Whether a bridge has created the lease for an entry that expires. */
export const isOwnLease = (lease: string | undefined): lease is string =>
  lease !== undefined && isOf(OWN_LEASES, lease);

/** TTL in seconds with which an entry that never expires is created. The entry is then detached from its lease. */
const FIRST_TTL = 60;

/** Seconds for which a bridge tries to revoke a lease. If that fails, the lease expires. */
const END_LEASES_FOR = 600;

/** Maximum number of entries that a bridge remembers. The leases of others are not used again. */
const MOST_REMEMBERED = 1000;

/** A lease that is ready for a new entry. */
export interface ReadyLease {
  readonly lease: EtcdLease;
  readonly user: LeaseUser;
}

/** An entry that this bridge has created. No late request can create it again. */
interface Created extends ReadyLease {
  readonly own: V3Entry;
}

/**
 * The leases of the entries of one bridge. A lease has one entry, and whoever detaches that entry from it disposes of it: the bridge whose
 * request has removed or moved the entry, and has compared the revision of its last write. That is one bridge at most. It revokes the
 * lease. If it has created the entry, it may use the lease again, as a client does: see {@link Leases}. A lease that nobody disposes
 * of, because an answer was lost, expires.
 */
export class BridgedLeases {
  readonly #client: V3Client;
  readonly #counts: LeaseCounts;
  /** By rank, the oldest first. */
  readonly #created = new Map<bigint, Created>();

  constructor(client: V3Client, counts: LeaseCounts) {
    this.#client = client;
    this.#counts = counts;
  }

  /**
   * Returns a lease for a new entry.
   * @param ttl null: the entry is to have no lease in the end
   */
  async forNew(key: string, ttl: number | null, call: GatewayCall): Promise<ReadyLease> {
    const { leases } = this.#client;
    for (;;) {
      const lease =
        ttl === null ? leases.fresh(FIRST_TTL, freshId(FIRST_LEASES)) : leases.single(ttl, () => freshId(OWN_LEASES));
      const user = { key, onExpired: () => {} };
      const isNew = lease.granted === 0;
      lease.add(user);
      try {
        await lease.prepare(call);
        if (isNew) this.#counts.granted += 1;
        if (!lease.isOver) return { lease, user };
        lease.remove(user);
      } catch (error) {
        lease.remove(user);
        if (!(error instanceof NotFound)) throw error;
      }
    }
  }

  /** Creates a lease for an entry that exists. */
  async grant(ttl: number): Promise<string> {
    const id = freshId(OWN_LEASES);
    await this.#client.requests.leases.grant(id, ttl, {});
    this.#counts.granted += 1;
    return id;
  }

  /** Call this when an entry was created with the lease, and no request that could create it again is unanswered. */
  created(own: V3Entry, { lease, user }: ReadyLease): void {
    this.#created.set(own.rank, { own, lease, user });
    for (const oldest of this.#created.keys()) {
      if (this.#created.size <= MOST_REMEMBERED) break;
      this.#created.delete(oldest);
    }
  }

  /** Call this when an entry was written again, with the lease that it has. */
  written(own: V3Entry): void {
    const created = this.#created.get(own.rank);
    if (created) this.#created.set(own.rank, { ...created, own });
  }

  /** Returns an entry as this bridge has last written it, if it has created it and remembers that. It may have changed or be gone. */
  remembered(rank: bigint): V3Entry | undefined {
    return this.#created.get(rank)?.own;
  }

  /** Revokes a lease without an entry, in the background. */
  unused({ lease, user }: ReadyLease): void {
    this.#counts.ended += 1;
    lease.remove(user);
  }

  /** Call this when an entry was removed, or moved to another lease, by a request that has compared its last write. */
  detached({ rank, lease }: V3Entry): void {
    const created = this.#take(rank);
    if (created && created.lease.id === lease) this.#client.leases.free(created.lease, created.user);
    else {
      if (created) this.unused(created);
      this.end(lease);
    }
  }

  /** Call this when an entry is gone: only if this bridge has created the entry, its lease is certainly not used again. */
  gone({ rank }: V3Entry): void {
    const created = this.#take(rank);
    if (created) this.unused(created);
  }

  /** Revokes a lease without entries, in the background, if a bridge created it. If that fails, the lease expires. */
  end(lease: string | undefined): void {
    if (lease === undefined || !(isOwnLease(lease) || isFirstLease(lease))) return;
    this.#counts.ended += 1;
    this.#client.leases.addRevocation(this.#client.requests.leases.revokeUntil(lease, Deadline.after(END_LEASES_FOR)));
  }

  #take(rank: bigint): Created | undefined {
    const created = this.#created.get(rank);
    this.#created.delete(rank);
    return created;
  }
}
