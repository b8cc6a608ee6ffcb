import { createHash } from 'node:crypto';
import { createDebug } from '../../base/debug.ts';
import type { AdvanceOptions, Marker, MarkerStore, StoreCall } from '../../recipe/store.ts';
import { FailedPrecondition, NotFound } from '../gateway/errors.ts';
import type { GatewayCall } from '../gateway/gateway.ts';
import type { MarkerWrite } from '../rpc/entries.ts';
import type { V3Entry } from '../rpc/entry.ts';
import { leaseIdOf } from '../rpc/leases.ts';
import type { LockRequests } from '../rpc/requests.ts';

const debug = createDebug('lease');

/** A marker on etcd v3. Its rank is the revision of its last write. */
interface V3Marker extends Marker {
  /** Id of its lease; undefined if it has none. */
  readonly lease: string | undefined;
}

/**
 * A {@link MarkerStore} on etcd v3. The marker has a lease of its own, which outlives the client. Each write renews that lease. Only
 * the first write, or one with a longer TTL, creates a lease; the old one is then revoked. A process killed before that leaves a
 * lease without a key until its TTL has passed.
 */
export class V3MarkerStore implements MarkerStore {
  readonly key: string;
  readonly #requests: LockRequests;

  constructor(requests: LockRequests, key: string) {
    this.#requests = requests;
    this.key = key;
  }

  async read({ signal }: StoreCall): Promise<V3Marker | undefined> {
    const { own } = await this.#requests.entries.get(this.key, { signal });
    return markerOf(own);
  }

  async advance({ from, to, ttl }: AdvanceOptions, { signal }: StoreCall): Promise<Marker | undefined> {
    const present = (from as V3Marker | undefined)?.lease;
    const lease =
      (await this.#renewed(present, ttl, { signal })) ?? (await this.#granted(leaseFor(from, to), ttl, { signal }));
    const written = await this.#write({ value: to, lease, modified: from?.rank ?? 0n }, { signal });
    // A lease that the marker does not have (or no longer has) is without a key: revoke it.
    for (const id of new Set([present, lease]))
      if (id !== undefined && id !== written?.lease) await this.#revoke(id, { background: true });
    return written;
  }

  async remove(marker: Marker, { signal }: StoreCall): Promise<boolean> {
    const { value, rank, lease } = marker as V3Marker;
    const { isRemoved, sent } = await this.#requests.entries.remove(
      this.key,
      { value, rank, modified: rank },
      { signal },
    );
    // An earlier request of this call may have removed it.
    if (!isRemoved && (sent === 1 || (await this.read({ signal })))) return false;
    if (lease !== undefined) await this.#revoke(lease, { signal });
    return true;
  }

  /**
   * Renews the lease of the marker. Resolves to its id; undefined if there is none, it is gone, or its TTL is too short. Also reads
   * the key: that shows whether the leader that renewed the lease has been replaced.
   */
  async #renewed(lease: string | undefined, ttl: number, { signal }: StoreCall): Promise<string | undefined> {
    if (lease === undefined) return undefined;
    try {
      const { granted } = await this.#requests.leases.renew(lease, [this.key], { signal });
      return granted >= ttl ? lease : undefined;
    } catch (error) {
      if (error instanceof NotFound) return undefined;
      throw error;
    }
  }

  async #granted(id: string, ttl: number, { signal }: StoreCall): Promise<string> {
    try {
      await this.#requests.leases.grant(id, ttl, { signal });
    } catch (error) {
      // An earlier try of this call has created the lease.
      if (!(error instanceof FailedPrecondition)) throw error;
      await this.#requests.leases.renew(id, [], { signal });
    }
    return id;
  }

  async #write(target: MarkerWrite, call: StoreCall): Promise<V3Marker | undefined> {
    try {
      return markerOf(await this.#requests.entries.write(this.key, target, call));
    } catch (error) {
      // The lease has ended, and with it the marker that was to be replaced.
      if (!(error instanceof NotFound)) throw error;
      return this.read(call);
    }
  }

  /** Revokes a lease without a key. If that fails, the lease expires. */
  async #revoke(id: string, options: GatewayCall): Promise<void> {
    await this.#requests.leases.revoke(id, options).catch((error: unknown) => {
      debug('lease %s of %s not revoked: %s', id, this.key, error);
    });
  }
}

/**
 * Returns the id of the lease for a change of the marker. A repeated call must not create a second lease. But once a change was
 * refused, the next one must have another lease: a late revocation of the first would remove the marker.
 */
const leaseFor = (from: Marker | undefined, to: string): string =>
  leaseIdOf(
    createHash('sha256')
      .update(`${from?.rank ?? 0n} ${to}`)
      .digest(),
  );

const markerOf = (entry: V3Entry | undefined): V3Marker | undefined =>
  entry && { value: entry.value, rank: entry.modified, lease: entry.lease };
