import type { V3Member } from '../../../src/server/v3/member.ts';
import type { Process } from '../virtual/process.ts';
import type { Member } from './member.ts';

export interface KnownLease {
  readonly id: bigint;
  readonly ttl: bigint;
  /** Milliseconds of the leader's clock. */
  readonly expiresAt: number;
}

/** What a leader knows that was replaced while it was stopped or cut off. */
export interface Former {
  readonly process: Process;
  readonly term: number;
  readonly revision: bigint;
  readonly leases: ReadonlyMap<bigint, KnownLease>;
  /** Whether it counts a lease as expired. The clock of a machine that sleeps stands still, so it may not. */
  readonly hasExpired: (lease: KnownLease) => boolean;
}

/** @param isAsleep whether its clock stands still while it is stopped */
export function formerLeader(
  { process }: Member,
  { store }: V3Member,
  { term, isAsleep }: { term: number; isAsleep: boolean },
): Former {
  const now = process.now();
  const leases = new Map<bigint, KnownLease>();
  for (const id of store.leases.ids) {
    const status = store.leases.status(id);
    if (status) leases.set(id, { id, ttl: status.granted, expiresAt: now + Number(status.left) * 1000 });
  }
  const hasExpired = ({ expiresAt }: KnownLease) => !isAsleep && expiresAt <= process.now();
  return { process, term, revision: store.revision, leases, hasExpired };
}
