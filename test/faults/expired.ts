import { setTimeout as sleep } from 'node:timers/promises';
import { termOf } from '../support/etcd.ts';
import { now } from '../support/stalls/stalls.mjs';

import type { FaultCluster } from './fault-cluster.ts';
import type { TestedStore } from './stores/store.ts';

/** Seconds after its TTL within which etcd v2 ends a key. */
const SOON = 2;
/**
 * Seconds after its TTL within which etcd v3 ends a lease: it looks for such leases each 0.5 s, tries again after 3 s if that
 * failed, and a new leader adds an election timeout.
 */
const LATE = 10;

/** What can expire, as one member has it. */
export interface Expiring<T> {
  /** Resolves to a number that changes whenever everything gets its whole TTL again: etcd v3's term. */
  term(): Promise<bigint>;
  /** Resolves to what has not expired. */
  read(): Promise<readonly T[]>;
}

/**
 * Resolves once nothing is left, or to what is left although it must have expired: `seconds` after the last change of the term.
 * One limit for all would be too short on a busy machine, where elections follow each other. A read that fails is repeated.
 * @param open chooses the member to read from, at the beginning and after each failure
 */
export async function leftAfter<T>(seconds: number, open: () => Promise<Expiring<T>>): Promise<readonly T[]> {
  let member = await open();
  let known: bigint | undefined;
  let end = 0;
  for (;;) {
    try {
      const term = await member.term();
      if (term !== known) end = now() + seconds * 1000;
      known = term;
      const left = await member.read();
      if (left.length === 0 || now() >= end) return left;
    } catch {
      member = await open();
    }
    await sleep(100);
  }
}

/**
 * Reads from the leader what has a TTL of at most `ttl` seconds and is kept alive by nobody, until nothing is left. Resolves to
 * what is left although it must have expired.
 */
export const leftIn = <T>(
  cluster: FaultCluster,
  { electionsRenew }: TestedStore,
  ttl: number,
  read: (url: string) => Promise<readonly T[]>,
): Promise<readonly T[]> =>
  leftAfter(ttl + (electionsRenew ? LATE : SOON), async () => {
    const { etcd } = await cluster.leader();
    return { term: async () => (electionsRenew ? termOf(etcd) : 0n), read: () => read(etcd.url) };
  });
