import type { Member, Version } from '../../v2/wire.ts';

/** Why a member could not be asked at all. */
export interface Unreachable {
  readonly reason: 'refused' | 'silent' | 'name' | 'tls' | 'other';
  readonly message: string;
}

/** What became of one thing that was tried. `refused`: the credentials do not suffice. */
export type Outcome =
  | { readonly is: 'done' }
  | { readonly is: 'refused'; readonly message: string }
  | { readonly is: 'failed'; readonly message: string };

/** Where a member's clock stands: seconds ahead of ours, between these two. */
export interface Clock {
  readonly by: 'test key' | 'Date header';
  readonly earliest: number;
  readonly latest: number;
}

/** What one member was seen to do. undefined is unknown: it was not asked, or gave no usable answer. */
export interface EndpointFacts {
  readonly endpoint: string;
  /** All else is unknown then. */
  readonly unreachable?: Unreachable | undefined;
  readonly version?: Version | undefined;
  /** Whether `/v2/keys` is served; `message` is what came instead, and `absent` that there is no such page. */
  readonly v2?:
    | { readonly on: true }
    | { readonly on: false; readonly absent: boolean; readonly message: string }
    | undefined;
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly clusterId?: string | undefined;
  readonly members?: readonly Member[] | undefined;
  /** The id of the leader it follows, or is; null when it says that there is none. */
  readonly leader?: string | null | undefined;
  readonly healthy?: boolean | undefined;
  /** Whether etcd asks for passwords. */
  readonly auth?: boolean | undefined;
  /** Seconds that entries of locks have left. */
  readonly ttls?: readonly number[] | undefined;
  /** Reading and writing where locks are, with our credentials; and without, where auth is on and we have some. */
  readonly read?: Outcome | undefined;
  readonly write?: Outcome | undefined;
  readonly guest?: { readonly read: boolean; readonly write: boolean } | undefined;
  /** Milliseconds, the median of a few. */
  readonly quorumReadMs?: number | undefined;
  /** The test key as the member named it. */
  readonly testKey?: string | undefined;
  /** What came of making it. */
  readonly testWrite?: Outcome | undefined;
  readonly clock?: Clock | undefined;
}

/** Everything measured, and what it is to be judged by. */
export interface Facts {
  readonly lockPrefix: string;
  readonly user: string | undefined;
  /** The TTL to judge by, where the user says one. */
  readonly ttl: number | undefined;
  /** Origins, as often as they were given. */
  readonly given: readonly string[];
  readonly endpoints: readonly EndpointFacts[];
}

/** One thing found. `fail` makes locks unsafe or impossible; `warn` does so once more goes wrong. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'fail';
  /** What it is about, the same in every version. */
  readonly about: About;
  /** Absent: the cluster as a whole. */
  readonly endpoint?: string;
  readonly text: string;
  /** What to do. */
  readonly advice?: string;
}

export type About =
  | 'reachable'
  | 'v2'
  | 'health'
  | 'leader'
  | 'access'
  | 'guest'
  | 'test-key'
  | 'names'
  | 'endpoints'
  | 'members'
  | 'cluster-id'
  | 'clocks';
