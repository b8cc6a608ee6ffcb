import { randomBytes } from 'node:crypto';
import type { Clock } from '../../../base/time.ts';
import { type Bytes, compare } from '../bytes.ts';
import * as errors from '../errors.ts';

/** Milliseconds between two looks for expired leases, as in etcd. */
const TICK = 500;
/** Least TTL in seconds: one and a half times the election timeout, rounded up. */
const LEAST_TTL = 2n;
const LONGEST_TTL = 9_000_000_000n;

interface Lease {
  readonly id: bigint;
  /** Seconds. */
  readonly ttl: bigint;
  readonly keys: Set<Bytes>;
  /** On the clock. */
  expiresAt: number;
}

/** A lease as a request shows it. Times are in whole seconds. */
export interface LeaseStatus {
  readonly granted: bigint;
  /** What is left of it. */
  readonly left: bigint;
  /** In order. */
  readonly keys: readonly Bytes[];
}

/** The leases of etcd v3, each with its keys. */
export class Leases {
  readonly #clock: Clock;
  readonly #remove: (keys: readonly Bytes[]) => void;
  readonly #byId = new Map<bigint, Lease>();
  #isStopped = false;
  #cancel: (() => void) | undefined;

  /** @param remove removes the keys of a lease that has ended, in one revision */
  constructor(clock: Clock, remove: (keys: readonly Bytes[]) => void) {
    this.#clock = clock;
    this.#remove = remove;
  }

  has(id: bigint): boolean {
    return this.#byId.has(id);
  }

  /** Returns the ids of all leases, those that expire first before others. */
  get ids(): readonly bigint[] {
    return [...this.#byId.values()].sort((one, other) => one.expiresAt - other.expiresAt).map(({ id }) => id);
  }

  /**
   * Creates a lease. A shorter TTL than etcd's least becomes that.
   * @param id 0: any
   * @throws {EtcdV3Refusal} if there is a lease with this id, or the TTL is too long
   */
  grant(id: bigint, ttl: bigint): { readonly id: bigint; readonly ttl: bigint } {
    if (ttl > LONGEST_TTL) throw errors.leaseTtlTooLarge();
    if (this.#byId.has(id)) throw errors.leaseExists();
    const granted = ttl < LEAST_TTL ? LEAST_TTL : ttl;
    const expiresAt = this.#clock.now() + Number(granted) * 1000;
    const lease = { id: id === 0n ? newId() : id, ttl: granted, keys: new Set<Bytes>(), expiresAt };
    this.#byId.set(lease.id, lease);
    this.#arm();
    return lease;
  }

  /** Starts the TTL of a lease anew. Returns it, in seconds; 0 if the lease is gone. */
  keepAlive(id: bigint): bigint {
    const lease = this.#byId.get(id);
    const now = this.#clock.now();
    if (!lease || lease.expiresAt <= now) return 0n;
    lease.expiresAt = now + Number(lease.ttl) * 1000;
    return lease.ttl;
  }

  status(id: bigint): LeaseStatus | undefined {
    const lease = this.#byId.get(id);
    if (!lease) return undefined;
    const left = BigInt(Math.trunc((lease.expiresAt - this.#clock.now()) / 1000));
    return { granted: lease.ttl, left, keys: [...lease.keys].sort(compare) };
  }

  /** Returns the keys of a lease in any order; none if it does not exist. */
  keysOf(id: bigint): Iterable<Bytes> {
    return this.#byId.get(id)?.keys ?? [];
  }

  /** @throws {EtcdV3Refusal} if the lease does not exist */
  revoke(id: bigint): void {
    const lease = this.#byId.get(id);
    if (!lease) throw errors.leaseNotFound();
    this.#end(lease);
  }

  /** Notes that a key has another lease than before; 0: none. */
  move(key: Bytes, before: bigint, after: bigint): void {
    this.#byId.get(before)?.keys.delete(key);
    this.#byId.get(after)?.keys.add(key);
  }

  /** No lease expires afterwards. */
  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #end(lease: Lease): void {
    this.#byId.delete(lease.id);
    this.#remove([...lease.keys].sort(compare));
  }

  #arm(): void {
    if (this.#cancel || this.#isStopped) return;
    const left = TICK - (this.#clock.now() % TICK);
    this.#cancel = this.#clock.after(left, () => {
      this.#cancel = undefined;
      const now = this.#clock.now();
      for (const lease of this.#byId.values()) if (lease.expiresAt <= now) this.#end(lease);
      if (this.#byId.size > 0) this.#arm();
    });
  }
}

/** Ids that etcd chooses are positive. */
const newId = (): bigint => BigInt.asUintN(63, randomBytes(8).readBigUInt64BE()) || 1n;
