/**
 * The JSON that the server of the page sends, to the page and to other programs. All times are milliseconds since the epoch, by the clock of
 * the server's host. Texts of clients are as in etcd, and cut if they are long.
 */
import type { EventKind } from '../queues/changes.ts';

/** A store whose locks are shown. */
export interface ShownStore {
  readonly api: 'v2' | 'v3';
  /** When etcd was last seen. */
  readonly seenAt: number;
  /** Since when etcd was not seen, and why; null if it answers. */
  readonly outage: { readonly since: number; readonly message: string } | null;
  /** Number of locks that are not shown, because there are too many. */
  readonly omitted: number;
}

/** When an entry expires unless it is renewed, as last seen. */
export interface ShownTtl {
  /** Seconds that were left; null: the entry never expires. */
  readonly left: number | null;
  /** When that was seen. */
  readonly at: number;
  /** When a renewal was last seen; null if none was. */
  readonly renewedAt: number | null;
}

/** Who made an entry, and since when it is known. */
export interface ShownClient {
  readonly kind: string;
  readonly identity: string | null;
  readonly label: string | null;
  /** Empty for clients that give their entries no value, such as Go's. */
  readonly uuid: string;
  readonly key: string;
  /** When the server of the page first saw the entry. */
  readonly seenAt: number;
  /** Since when it is in the queue; null if that is not known. */
  readonly queuedAt: number | null;
  /** Since when it holds the lock; null if it waits, or if nobody saw it acquire the lock. */
  readonly heldAt: number | null;
}

/** A lock in the list of all locks. */
export interface ShownLock {
  /** Identifies the lock until it has no entry. */
  readonly id: number;
  readonly api: 'v2' | 'v3';
  readonly name: string;
  /** Whether the name is cut. */
  readonly isCut: boolean;
  /** The first holder. */
  readonly holder: ShownClient;
  readonly holders: number;
  readonly waiters: number;
  /** Since when the longest wait lasts; null without waiters. */
  readonly waitingSince: number | null;
  /** Whether `waitingSince` is known; otherwise, the wait lasts at least since then. */
  readonly isWaitKnown: boolean;
  /** What the leader of an election publishes; null if nothing. */
  readonly value: string | null;
  /** Number of entries that publish a value, as those of an election do. */
  readonly candidates: number;
}

/** The lock with the TTL of its first holder; null if no read has shown it. */
export type LockWithTtl = ShownLock & { readonly ttl: ShownTtl | null };

/** All locks: the answer of `/api/locks`, and the event `snapshot`. */
export interface Snapshot {
  readonly now: number;
  readonly stores: readonly ShownStore[];
  readonly locks: readonly LockWithTtl[];
}

/** The event `change`. */
export interface SnapshotChange extends Snapshot {
  /** The ids of locks that have no entry any more. */
  readonly gone: readonly number[];
  /** The TTLs of locks of which nothing else has changed, by id. */
  readonly ttls: Readonly<Record<string, ShownTtl | null>>;
}

/** An entry of an open lock. */
export interface ShownEntry extends ShownClient {
  readonly state: 'holds' | 'waits';
  readonly mode: 'exclusive' | 'shared';
  readonly limit: number | null;
  readonly ttl: ShownTtl | null;
  /** The nearest entry that must go first, and how many must; null for a holder. */
  readonly waitsFor: { readonly key: string; readonly count: number } | null;
  /** What a candidate of an election publishes. */
  readonly value: string | null;
}

/** What happened to an entry of an open lock. */
export interface ShownEvent {
  readonly at: number;
  readonly kind: EventKind;
  readonly client: Pick<ShownClient, 'identity' | 'label' | 'uuid' | 'key'>;
}

/** The queue of a lock: the answer of `/api/locks/<name>`, and the event `lock`. */
export interface ShownQueue {
  readonly now: number;
  /** When this server started. */
  readonly startedAt: number;
  /** Whether viewers may release entries. */
  readonly mayRelease: boolean;
  /** Since when `history` has all events: since the start, or later if older ones are not kept. */
  readonly recordedSince: number;
  readonly stores: readonly ShownStore[];
  readonly name: string;
  /** The queue in each store where the lock has entries. */
  readonly queues: readonly {
    readonly api: 'v2' | 'v3';
    readonly holders: number;
    readonly waiters: number;
    /** In the order of the queue. Of a long queue, only its begin. */
    readonly entries: readonly ShownEntry[];
  }[];
  /** The last events, the oldest first. */
  readonly history: readonly (ShownEvent & { readonly api: 'v2' | 'v3' })[];
}

/** What the removal of an entry means: the answer of `GET /api/release`. */
export interface ShownPlan {
  readonly entry: string;
  readonly isHolder: boolean;
  readonly consequence: string;
}

/** The answer of `POST /api/release`. */
export interface ShownResult {
  readonly isRemoved: boolean;
  readonly text: string;
}

/** A job that runs once per tick, with the tick that a host has begun last. */
export interface ShownJob {
  readonly api: 'v2' | 'v3';
  readonly name: string;
  /** When that tick was due; null without a readable record. */
  readonly lastTick: number | null;
  /** `no record`: a job of which only the schedule is known. */
  readonly state: 'begun' | 'ran' | 'failed' | 'unreadable' | 'no record';
  /** Label of the client that has begun it; null if it has none. */
  readonly host: string | null;
  /** Number of ticks since that one, the present one included, that no host has begun; null if the schedule is not known. */
  readonly missed: number | null;
}

/** The answer of `/api/jobs`. */
export interface ShownJobs {
  readonly now: number;
  readonly jobs: readonly ShownJob[];
  /** The stores that do not list jobs. */
  readonly unlisted: readonly ('v2' | 'v3')[];
}

/** A finding of `doctor`. */
export interface ShownFinding {
  readonly level: 'ok' | 'warn' | 'fail';
  /** Topic, stable across versions. */
  readonly about: string;
  /** null for the whole cluster. */
  readonly endpoint: string | null;
  readonly text: string;
  readonly advice: string | null;
}

/** The answer of `/api/checks`. */
export interface ShownChecks {
  readonly madeAt: number;
  /** Seconds that the checks took. */
  readonly took: number;
  readonly stores: readonly { readonly api: 'v2' | 'v3'; readonly findings: readonly ShownFinding[] }[];
}

/** Clients by kind, as `doctor --moving` has them. */
export type ShownClients = Readonly<
  Record<
    'v2' | 'both' | 'either' | 'v3',
    { readonly count: number; readonly uses: readonly { readonly lock: string; readonly client: string }[] }
  >
>;

/** The answer of `/api/move`. */
export interface ShownMove {
  readonly madeAt: number;
  /** Seconds that the watch took. */
  readonly took: number;
  /** null: v2 was not read, because members run etcd 3.6 already. */
  readonly clients: ShownClients | null;
  readonly findings: readonly ShownFinding[];
}
