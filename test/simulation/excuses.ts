import type { Claim } from './claim.ts';
import type { Process } from './virtual/process.ts';

/** A broken condition of the guarantees, because of which two may hold a lock: the earlier one then has the lower token. */
export type Excuse =
  /** Its process was stopped. */
  | 'stopped'
  /** Somebody has removed its entry by hand. */
  | 'evicted'
  /** etcd has revoked its lease, although that was alive. */
  | 'revoked'
  /** It is a client of others whose entry may have gone: see {@link Claim.isOverdue}. */
  | 'overdue'
  /** The clocks of the members differ by more than the margin of its TTL. */
  | 'clocks'
  /** It holds the lock in a cluster that was replaced since. */
  | 'replaced';

export interface LiveHold extends Claim {
  readonly process: Process;
  /** Whether its entry may have been removed by hand. */
  isEvicted: boolean;
  /** Number of the cluster that it is in. */
  readonly cluster: number;
  /** When it began, in milliseconds of the world. */
  readonly begunAt: number;
}

/** etcd has removed entries of a lock that were alive. */
interface Revocation {
  /** Tokens of its holders are lower. */
  readonly revision: bigint;
  /** When each of its holders must know it. */
  readonly until: number;
}

/** Milliseconds within which holders must know that their entry or their cluster is gone. */
const LONGEST_TTL = 20_000;

/** Milliseconds within which an answer that shows a hold arrives. */
const LONGEST_READ = 5000;

/** Knows which conditions of the guarantees are broken. */
export class Excuses {
  /** The processes whose entries may expire too early, because the clocks of the members differ. */
  readonly hurried = new Set<string>();
  /** Number of times that the cluster was replaced. */
  #clusters = 0;
  #replacedAt = Number.NEGATIVE_INFINITY;
  /** Locks whose holders somebody evicts at the moment, with the number of those who do. */
  readonly #evicting = new Map<string, number>();
  /** When somebody last evicted the holders of a lock. */
  readonly #evictedAt = new Map<string, number>();
  readonly #revocations = new Map<string, Revocation[]>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns a claim with what may excuse it later. */
  begin(process: Process, claim: Claim): LiveHold {
    const { lock, isOneOfSeveral = false } = claim;
    // A call that waits for further locks has this one for longer than its claim, and others have read the queue before theirs.
    const isEvicted = this.#evicting.has(lock) || this.#wasEvicted(lock, isOneOfSeveral ? LONGEST_TTL : LONGEST_READ);
    return { ...claim, process, isEvicted, cluster: this.#clusters, begunAt: this.#now() };
  }

  /**
   * Call this when etcd has revoked a lease that was alive.
   * @param ttl seconds within which a holder notices
   */
  revoked(lock: string, revision: bigint, ttl: number): void {
    const revocations = this.#revocations.get(lock) ?? [];
    revocations.push({ revision, until: this.#now() + ttl * 1000 });
    this.#revocations.set(lock, revocations);
  }

  /** Call this when another cluster with empty stores is in the place of the one before. */
  replaced(): void {
    this.#clusters += 1;
    this.#replacedAt = this.#now();
    this.#revocations.clear();
  }

  /** Call this when somebody begins to evict the holders of a lock, and the returned function afterwards. */
  evicts(lock: string, live: Iterable<LiveHold>): () => void {
    for (const hold of live) hold.isEvicted = true;
    this.#evicting.set(lock, (this.#evicting.get(lock) ?? 0) + 1);
    return () => {
      this.#evictedAt.set(lock, this.#now());
      const left = (this.#evicting.get(lock) ?? 0) - 1;
      if (left > 0) this.#evicting.set(lock, left);
      else this.#evicting.delete(lock);
    };
  }

  /** Whether the cluster was ever replaced. */
  get wasReplaced(): boolean {
    return this.#clusters > 0;
  }

  /** Whether clients may still believe in a cluster that was replaced. */
  get isReplaced(): boolean {
    return this.#now() < this.#replacedAt + LONGEST_TTL;
  }

  areOfTwoClusters(one: LiveHold, other: LiveHold): boolean {
    return one.cluster !== other.cluster && this.isReplaced;
  }

  /** Whether a holder may be wrong about what etcd has stored. */
  mayErr(hold: LiveHold): boolean {
    return this.#wasEvicted(hold.lock) || this.isReplaced || this.of(hold) !== undefined;
  }

  #wasEvicted(lock: string, within = LONGEST_TTL): boolean {
    return this.#now() < (this.#evictedAt.get(lock) ?? Number.NEGATIVE_INFINITY) + within;
  }

  of({ process, lock, tokens, isEvicted, isOverdue, begunAt }: LiveHold): Excuse | undefined {
    if (isOverdue?.()) return 'overdue';
    if (process.isBehindSince(begunAt)) return 'stopped';
    if (isEvicted) return 'evicted';
    if (this.hurried.has(process.name)) return 'clocks';
    const revocations = this.#revocations.get(lock) ?? [];
    const now = this.#now();
    const token = tokens.v3 ?? tokens.bridge;
    const isRevoked = revocations.some(({ revision, until }) => token !== undefined && token < revision && now < until);
    return isRevoked ? 'revoked' : undefined;
  }
}
