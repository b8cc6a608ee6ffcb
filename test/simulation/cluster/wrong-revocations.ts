import type { V3Member } from '../../../src/server/v3/member.ts';
import type { Random } from '../virtual/random.ts';
import type { Consensus } from './consensus.ts';
import type { Counts } from './counts.ts';
import type { Former } from './former-leader.ts';
import type { Member } from './member.ts';

/** Milliseconds until the revocations of a leader that continues are carried out: mostly these, … */
const SOON: readonly [number, number] = [0, 500];

/** … but when its requests time out first, as late as this. */
const LATE = 7010;

/** A lease that was revoked although it was alive. */
export interface Revoked {
  /** Seconds. */
  readonly ttl: number;
  /** Names of the locks that had entries with it. */
  readonly locks: readonly string[];
  /** The revision at which they were removed. */
  readonly revision: bigint;
}

export interface WrongRevocationsOptions {
  readonly v3: V3Member;
  readonly consensus: Consensus<Member>;
  readonly random: Random;
  readonly counts: Counts;
  readonly onRevoked: (revoked: Revoked) => void;
}

/** A leader that was stopped revokes the leases that have expired by its own clock, although the new leader has kept them alive. */
export function revokeWrongly(member: Member, former: Former, options: WrongRevocationsOptions): void {
  const { v3, consensus, random, counts, onRevoked } = options;
  const { leases } = v3.store;
  const delay = random.chance(0.75) ? random.between(...SOON) : LATE;
  const now = member.process.now();
  for (const { id, expiresAt, ttl } of former.leases.values()) {
    if (expiresAt > now || !leases.has(id) || random.chance(0.2)) continue;
    const revoke = (): void => {
      if (!leases.has(id)) return;
      const locks = [...leases.keysOf(id)].map(lockOf);
      leases.revoke(id);
      counts.wrongRevocations += 1;
      onRevoked({ ttl: Number(ttl), locks, revision: v3.store.revision });
    };
    member.process.after(delay, () => void consensus.propose(member, revoke).catch(() => {}));
  }
}

/** An entry is at `/_locks/NAME/ID`. */
const lockOf = (key: string): string => key.slice('/_locks/'.length, key.lastIndexOf('/'));
