import { type Claim, describe, earlierOf, KINDS, mayHoldTogether } from './claim.ts';
import { Closing } from './closing.ts';
import { type Excuse, Excuses, type LiveHold } from './excuses.ts';
import { areInOrder } from './order.ts';
import type { CallOptions, CallReport, HoldReport, Report } from './report.ts';
import type { Stored } from './stored.ts';
import { contradictionsOf, createdAgain, overestimateOf } from './stored-holds.ts';
import type { Process } from './virtual/process.ts';
import { Waits } from './waits.ts';

/** What a checker needs to know of the world. */
export interface Observed {
  readonly now: () => number;
  readonly trace: (line: string) => void;
  readonly stored: () => readonly Stored[];
  /** Whether nothing goes wrong, and there is nobody but clients of this package. */
  readonly isPlain: boolean;
  /** Whether there are calls that remove entries of others. */
  readonly hasRemovals: boolean;
  /** Whether clients may hold locks in one cluster or in another one. */
  readonly hasTwoClusters: boolean;
  /** See {@link Report.hasNoEvictions}. */
  readonly hasNoEvictions: boolean;
  /** Whether writes were carried out that nobody waited for any more: a key that nobody knows of stays until its TTL has passed. */
  readonly hadLateWrites: () => boolean;
  /** Returns since when most members can serve a process, so that it can renew its entries; undefined: not known. */
  readonly servedSince: (process: Process) => number | undefined;
}

/** Milliseconds by which a call may exceed its timeout. */
const GRACE = 500;

/** Seconds of a TTL whose renewals outlast an election. */
const LONG_TTL = 10;

/** Watches what the processes report, and notes what must not happen. */
export class Checker {
  readonly violations: string[] = [];
  holds = 0;
  calls = 0;
  losses = 0;
  /** Overlaps, by what excuses them. */
  readonly excused: Record<Excuse, number> = {
    stopped: 0,
    evicted: 0,
    revoked: 0,
    overdue: 0,
    clocks: 0,
    replaced: 0,
  };
  readonly outcomes = new Map<string, number>();
  readonly excuses: Excuses;
  readonly #waits: Waits;
  readonly #closing: Closing;
  readonly #world: Observed;
  readonly #live = new Map<string, Set<LiveHold>>();
  readonly #highest = new Map<string, bigint>();
  /** Who has run each tick. */
  readonly #ticks = new Map<string, string>();
  readonly #open = new Set<{ readonly process: Process; readonly what: string }>();
  /** Keys of v2 that requests have removed. A key is never used twice. */
  readonly #removed = new Set<string>();

  constructor(world: Observed) {
    this.#world = world;
    this.excuses = new Excuses(world.now);
    this.#waits = new Waits(world.now);
    this.#closing = new Closing(world.stored);
  }

  /** Returns where a process reports to. */
  reportOf(process: Process): Report {
    return {
      call: (what, timeout, options) => this.#call(process, what, timeout, options),
      hold: (claim) => this.#hold(process, claim),
      takesInOrder: (claims) => this.#takesInOrder(process, claims),
      evicts: (lock) => this.excuses.evicts(lock, this.#live.get(lock) ?? []),
      tick: (job, at) => this.#tick(process, `${job} ${at.toISOString()}`),
      unexpected: (what, error) => {
        const mayChange = this.excuses.wasReplaced || this.#world.hasTwoClusters;
        if (!mayChange || !isClusterIdChanged(error))
          this.violate(`${process.name}: ${what} failed unexpectedly: ${textOf(error)}`);
      },
      loses: (why) => this.loses(process, why),
      drops: () => {},
      closes: (owners) => this.#closes(process, [...owners]),
      isPlain: this.#world.isPlain,
      hasNoEvictions: this.#world.hasNoEvictions,
    };
  }

  /**
   * Call this when etcd has revoked a lease that was alive.
   * @param ttl seconds within which a holder notices
   */
  revoked(lock: string, revision: bigint, ttl: number): void {
    this.#world.trace(`the entry of ${lock} was revoked wrongly at revision ${revision}`);
    this.excuses.revoked(lock, revision, ttl);
  }

  /** Call this when another cluster with empty stores is in the place of the one before: tokens begin again. */
  replaced(): void {
    this.excuses.replaced();
    this.#highest.clear();
    this.#ticks.clear();
    this.#removed.clear();
  }

  /** Call this when a request has removed a key of v2. */
  removed(key: string): void {
    this.#removed.add(key);
  }

  /** Call this when a request of a manager has lost its entry while it waited. @param ttl seconds; undefined: not known */
  requeues(process: Process, ttl: number | undefined, why: unknown): void {
    this.loses(process, why);
    if (isUnrenewed(why) && this.#canRenew({ process, ttl }))
      this.violate(`${process.name} waits, and could renew its entry: ${why.message}`);
  }

  /** Call this when a process reports a loss. If nobody removes entries of others, it has not removed that entry itself. */
  loses(process: Process, why: unknown): void {
    const [, key] = (why instanceof Error && /(\S+) is lost: its key is gone/.exec(why.message)) || [];
    if (key !== undefined && this.#removed.has(key) && !this.#world.hasRemovals)
      this.violate(`${process.name} has lost ${key}, which had not expired: a request has removed it`);
  }

  violate(what: string): void {
    this.#world.trace(`VIOLATION: ${what}`);
    this.violations.push(`${(this.#world.now() / 1000).toFixed(3)} s: ${what}`);
  }

  /** The keys in the stores. */
  stored(): readonly Stored[] {
    return this.#world.stored();
  }

  /** The calls that have not ended, other than those of dead processes. */
  get open(): readonly string[] {
    return [...this.#open]
      .filter(({ process }) => !process.isKilled)
      .map(({ process, what }) => `${process.name}: ${what}`);
  }

  #call(process: Process, what: string, timeout: number, { isForSeveral = false }: CallOptions = {}): CallReport {
    this.calls += 1;
    const call = { process, what };
    const time = timeOf(process);
    this.#open.add(call);
    const endSeveral = isForSeveral ? this.#waits.beginSeveral() : undefined;
    this.#world.trace(`${process.name}: ${what}`);
    return {
      since: this.#world.now(),
      settled: (outcome) => {
        if (!this.#open.delete(call)) return;
        endSeveral?.();
        this.#world.trace(`${process.name}: ${what}: ${outcome}`);
        this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
        const took = time();
        if (timeout > 0 && took > timeout * 1000 + GRACE)
          this.violate(
            `${process.name}: ${what} took ${Math.round(took)} ms, with a timeout of ${timeout} s: ${outcome}`,
          );
      },
      ended: () => {},
    };
  }

  #tick(process: Process, tick: string): void {
    this.#world.trace(`${process.name}: runs the tick ${tick}`);
    if (this.#ticks.has(tick))
      this.violate(`${process.name} runs the tick ${tick}, which ${this.#ticks.get(tick)} has run`);
    this.#ticks.set(tick, process.name);
  }

  #hold(process: Process, reported: Claim): HoldReport {
    const claim = this.#world.hasTwoClusters ? this.#inItsCluster(reported) : reported;
    const { lock, maxHold } = claim;
    const live = this.#live.get(lock) ?? new Set();
    this.#live.set(lock, live);
    this.holds += 1;
    this.#world.trace(`${process.name}: HOLDS ${describe(claim)}`);
    const hold = this.excuses.begin(process, claim);
    if (claim.isOverdue?.()) this.#excuse('overdue', hold);
    else {
      const others = [...live].filter((other) => !other.process.isKilled);
      // One that has expired, or is in another cluster, takes no place of a semaphore.
      const excused = others.filter((other) => this.excuses.of(other) || this.excuses.areOfTwoClusters(hold, other));
      const counted = others.filter((other) => !excused.includes(other));
      for (const other of others) if (!mayHoldTogether(claim, other, counted)) this.#judge(hold, other);
      this.#checkTokens(hold);
      if (hold.key !== undefined && hold.holdAtLeast !== undefined) this.#closing.keeps(hold.key);
      if (!this.excuses.mayErr(hold)) this.#checkStored(hold, live.size === 0);
    }
    live.add(hold);
    const time = timeOf(process);
    const end = (how: 'LOST' | 'ends') => {
      if (!live.delete(hold)) return;
      this.#world.trace(`${process.name}: ${how} ${describe(claim)}`);
      const took = time();
      // A client that closes ends its holds, and keeps their entries for as long as `holdAtLeast` says.
      const isLost = how === 'LOST' && !this.#closing.isClosing(process);
      this.#waits.end(hold, isLost ? undefined : took);
      if (maxHold !== undefined && took > maxHold * 1000 + GRACE)
        this.violate(
          `${process.name} has held ${describe(claim)} for ${Math.round(took)} ms, with a maxHold of ${maxHold} s`,
        );
    };
    return {
      isValidFor: (seconds) => {
        if (!live.has(hold) || this.excuses.mayErr(hold)) return;
        const wrong =
          seconds > 0
            ? overestimateOf(hold, seconds, this.#storedFor(hold))
            : `${process.name} has not been told that it has lost ${describe(claim)}`;
        if (wrong !== undefined) this.violate(wrong);
      },
      lost: (why) => {
        this.losses += 1;
        this.loses(process, why);
        const isExplained =
          claim.isOneOfSeveral ||
          maxHold !== undefined ||
          this.#closing.isClosing(process) ||
          this.excuses.mayErr(hold);
        if (this.#canRenew(hold) && live.has(hold) && !isExplained)
          this.violate(`${process.name} has lost ${describe(claim)} although it could renew its entry`);
        end('LOST');
      },
      ended: () => end('ends'),
    };
  }

  #storedFor(claim: Claim): readonly Stored[] {
    const stored = this.#world.stored();
    return claim.in === undefined ? stored : stored.filter(({ cluster }) => cluster === claim.in);
  }

  /** In each cluster a lock is another one. */
  #inItsCluster(claim: Claim): Claim {
    const [entry, another] = this.#world.stored().filter(({ key }) => key === claim.key);
    if (!entry) return claim;
    // Nobody knows with which of two entries it is held, so nothing follows from it.
    if (another) return { ...claim, key: undefined, lock: `${claim.lock} of hold ${this.holds}` };
    return { ...claim, in: entry.cluster, lock: `${claim.lock} of ${entry.cluster}` };
  }

  /** Whether nothing has kept a holder from renewing its entry. */
  #canRenew({ process, ttl = 0 }: { readonly process: Process; readonly ttl?: number | undefined }): boolean {
    if (this.#world.isPlain) return true;
    const since = this.#world.servedSince(process) ?? Number.POSITIVE_INFINITY;
    return ttl >= LONG_TTL && this.#world.now() - since > ttl * 1000;
  }

  #checkStored(hold: LiveHold, isFirst: boolean): void {
    const { process, key } = hold;
    if (key === undefined) return;
    const stored = this.#storedFor(hold);
    for (const contradiction of contradictionsOf(hold, stored)) this.violate(contradiction);
    for (const again of createdAgain(stored)) this.violate(`${again} was created again`);
    if (!this.#world.isPlain) return;
    for (const when of this.#waits.begin(hold, isFirst))
      this.violate(`${process.name} holds ${describe(hold)} ${when}`);
  }

  #closes(process: Process, owners: readonly string[]): () => void {
    const closed = this.#closing.begin(process, owners);
    return () => {
      const left = closed();
      if (this.#world.hadLateWrites() || process.isBehind) return;
      for (const key of left) this.violate(`${process.name} has closed its client, and left ${key}`);
    };
  }

  #takesInOrder(process: Process, claims: readonly Claim[]): void {
    // Tokens of the cluster before are of no use.
    if (!this.excuses.isReplaced && !this.#world.hasTwoClusters && !areInOrder(claims))
      this.violate(`${process.name} has not taken its locks in the order of their names: ${claims.map(describe)}`);
  }

  #checkTokens(hold: LiveHold): void {
    // One on both APIs may be of both clusters.
    if (this.excuses.isReplaced) return;
    const { process, lock, mode, limit, tokens, isOneOfSeveral = false, isTakenOver = false } = hold;
    const excuse = this.excuses.of(hold);
    // One of several may be lost while its call waits for the others.
    if (excuse === 'revoked' || (excuse && isOneOfSeveral)) return;
    // A process that was stopped reports late that it holds the lock, with an entry that may have gone since.
    if (excuse && process.isBehind) return;
    // Its entry on v2 may be evicted while it enters the queue on v3.
    if (excuse === 'evicted' && tokens.v2 !== undefined && tokens.v3 !== undefined) return;
    for (const kind of KINDS) {
      const token = tokens[kind];
      if (token === undefined) continue;
      const highest = this.#highest.get(`${kind} ${lock}`) ?? -1n;
      const isLower = isTakenOver ? token < highest : token <= highest;
      if (mode === 'exclusive' && limit === undefined && isLower)
        this.violate(`${process.name} holds ${describe(hold)}, but there was a token ${highest} of ${kind}`);
      if (token > highest) this.#highest.set(`${kind} ${lock}`, token);
    }
  }

  #judge(hold: LiveHold, other: LiveHold): void {
    const earlier = other.isOverdue?.() ? [other] : earlierOf(hold, other);
    const [excuse] = this.excuses.areOfTwoClusters(hold, other)
      ? ['replaced' as const]
      : earlier.flatMap((each) => this.excuses.of(each) ?? []);
    if (excuse) this.#excuse(excuse, other);
    else {
      const isStopped = other.process.isBehind ? ', stopped' : '';
      const [one, two] = [hold, other].map((each) => `${each.process.name} holds ${describe(each)}`);
      this.violate(`${one}, and ${two}${isStopped}`);
    }
  }

  #excuse(why: Excuse, { process, lock }: LiveHold): void {
    this.excused[why] += 1;
    this.#world.trace(`${process.name}: its hold of ${lock} is excused: ${why}`);
  }
}

/** Returns a function that tells the milliseconds of a process since now, without those for which it was stopped. */
function timeOf(process: Process): () => number {
  const running = () => process.now() - process.stoppedFor;
  const since = running();
  return () => running() - since;
}

/** Each process has an error class of its own. */
const isClusterIdChanged = (error: unknown): boolean => error instanceof Error && error.name === 'EtcdClusterIdChanged';

const isUnrenewed = (error: unknown): error is Error =>
  error instanceof Error && error.name === 'EtcdLockExpired' && error.message.endsWith('was not renewed in time');

const textOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}\n${error.stack}` : String(error);
