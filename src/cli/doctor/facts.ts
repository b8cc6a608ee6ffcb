import type { StoreApi } from '../../client.ts';
import type { MemberInfo, Version } from '../../v2/wire.ts';

/** Why a member cannot be reached. */
export interface Unreachable {
  readonly reason: 'refused' | 'silent' | 'name' | 'tls' | 'protocol' | 'other';
  readonly message: string;
}

/** Whether a server has an API. If not, `message` says why, and `absent` means status 404. */
export type Presence =
  | { readonly on: true }
  | { readonly on: false; readonly absent: boolean; readonly message: string };

/** Result of one attempted operation. `refused` means wrong credentials or missing permissions. */
export type Outcome =
  | { readonly is: 'done' }
  | { readonly is: 'refused'; readonly message: string }
  | { readonly is: 'failed'; readonly message: string };

/** Offset of a member's clock from the local clock, in seconds: between `earliest` and `latest`. */
export interface ClockOffset {
  readonly by: 'test key' | 'Date header';
  readonly earliest: number;
  readonly latest: number;
}

/** Measurements of one member. undefined means unknown: not measured, or no usable answer. */
export interface EndpointFacts {
  readonly endpoint: string;
  /** If set, everything else is unknown. */
  readonly unreachable?: Unreachable | undefined;
  readonly version?: Version | undefined;
  readonly v2?: Presence | undefined;
  /** The JSON gateway of the v3 API. */
  readonly v3?: Presence | undefined;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly clusterId?: string | undefined;
  readonly members?: readonly MemberInfo[] | undefined;
  /** The id of the leader; null if the member reports that there is none. */
  readonly leader?: string | null | undefined;
  readonly healthy?: boolean | undefined;
  /** Whether authentication is enabled. */
  readonly auth?: boolean | undefined;
  /** In seconds. v2: the remaining TTLs of all entries; v3: the TTLs of some of the leases. */
  readonly ttls?: readonly number[] | undefined;
  /** Names of the locks that have entries, for each store that could be read. */
  readonly locks?: Partial<Readonly<Record<StoreApi, readonly string[]>>> | undefined;
  /** v3 only: keys and directories at the top of the v2 store, without hidden ones, whose names begin with "_". */
  readonly v2Content?: readonly string[] | undefined;
  /** v3 only: keys without a lease in the queues of locks. */
  readonly withoutLease?: readonly string[] | undefined;
  /** Result of a read below the lock prefix, with the given credentials. */
  readonly read?: Outcome | undefined;
  /** Result of a write below the lock prefix, with the given credentials. */
  readonly write?: Outcome | undefined;
  /** Whether reads and writes succeed without credentials. Measured only if auth is on and credentials are given. */
  readonly guest?: { readonly read: boolean; readonly write: boolean } | undefined;
  /** Median time of several quorum reads (v3: linearizable reads), in milliseconds. */
  readonly quorumReadMs?: number | undefined;
  /** The test key; the member chose the last part of it. */
  readonly testKey?: string | undefined;
  /** Result of creating the test key. */
  readonly testWrite?: Outcome | undefined;
  readonly clock?: ClockOffset | undefined;
}

/** All measurements, and the options for assessing them. */
export interface Facts {
  /** The API of the locks. Default `v2`. */
  readonly api?: StoreApi | undefined;
  readonly lockPrefix: string;
  readonly user: string | undefined;
  /** The value of --ttl, in seconds. */
  readonly ttl: number | undefined;
  /** Origins of the given endpoints, including duplicates. */
  readonly given: readonly string[];
  readonly endpoints: readonly EndpointFacts[];
  /** v3 only: URLs from the list of members, not among the endpoints, that serve no gateway. */
  readonly withoutGateway?: readonly string[] | undefined;
  /** URLs of members that run etcd 3.6 or later, among the endpoints and in the list of members. */
  readonly upgraded?: readonly string[] | undefined;
}

/** One finding. `fail`: locks are unsafe or impossible. `warn`: some locks may be, or all after another fault. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'fail';
  /** Topic of the finding, stable across versions. */
  readonly about: About;
  /** Absent for findings on the whole cluster. */
  readonly endpoint?: string;
  readonly text: string;
  /** What the user can do. */
  readonly advice?: string;
}

export type About =
  | 'reachable'
  | 'v2'
  | 'v3'
  | 'version'
  | 'health'
  | 'leader'
  | 'access'
  | 'guest'
  | 'test-key'
  | 'names'
  | 'endpoints'
  | 'members'
  | 'cluster-id'
  | 'clocks'
  | 'stores'
  | 'moving'
  | 'upgrade'
  | 'leases';
