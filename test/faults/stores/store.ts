import type { StoreApi } from '../../../src/client.ts';
import type { EtcdClient } from '../../../src/index.ts';
import type { FaultMember } from '../fault-cluster.ts';
import type { QueueLog } from '../queue-log.ts';
import type { Request } from '../tcp-proxy.ts';

/** A client of the same queue that is not of this package. */
export type ForeignKind = 'python-etcd' | 'etcdctl lock';

/** What a request of this package is for. A `poll` waits for a change, a `listing` reads who is before the own entry. */
export type Purpose = 'append' | 'renewal' | 'removal' | 'poll' | 'listing';

/** One entry of a queue, as etcd has it. */
export interface QueuedKey {
  readonly key: string;
  readonly value: string;
}

export interface ForeignHold {
  readonly key: string;
  readonly token: bigint;
  release(): Promise<void>;
}

/** What the fault tests need of an API of etcd, beside the clients of this package. */
export interface TestedStore {
  readonly api: StoreApi;
  readonly foreign: ForeignKind;
  /** Milliseconds: the election timeout of a steady cluster. etcd v3 raises a TTL that is shorter than one and a half of it. */
  readonly steadyElection: number;
  /** Whether a new leader gives each entry its whole TTL again. */
  readonly electionsRenew: boolean;
  /** Seconds: the shortest TTL in a steady cluster. */
  readonly shortestTtl: number;
  /** How many appends an append makes whose first answer is lost. */
  readonly appendsAfterLoss: number;
  /** Makes the requests that a client makes once, before the first append with this TTL. */
  prepare(client: EtcdClient, ttl: number): Promise<void>;
  /** Holds the lock by the foreign client as soon as possible. The end of the test stops that client. */
  takeForeign(lock: string, by: readonly FaultMember[], ttl: number): Promise<ForeignHold>;
  /** Reads the queue in order. The read sees every write that was confirmed before it began. */
  queue(lock: string, url: string): Promise<QueuedKey[]>;
  /** Returns undefined for a request that has none of these purposes, or is not about a lock. */
  purposeOf(request: Request): Purpose | undefined;
  /** Whether the request names that lock or its entry. On etcd v3 a request about a lease names no lock. */
  isAbout(request: Request, lock: string): boolean;
  /** Returns a function that matches the requests that renew this entry. */
  renewalOf(lock: string, url: string): Promise<(request: Request) => boolean>;
  /** Resolves once the first entry of the queue has been renewed after this call, or replaced. */
  untilRenewed(lock: string, members: readonly FaultMember[], url: () => Promise<string>): Promise<void>;
  /** Writes to a key that belongs to no lock. Resolves to whether etcd has confirmed it. */
  write(url: string): Promise<boolean>;
  /** Reads so that the answer needs a quorum. Resolves to whether there was an answer. Opens a connection of its own. */
  readByQuorum(url: string, signal: AbortSignal): Promise<boolean>;
  /** Watches the queues on each member, past the proxies. The time of a change is when the first member reported it. */
  watchQueues(urls: readonly string[]): Promise<QueueLog>;
  /** Ids of all leases that there are; none on etcd v2. */
  leases(url: string): Promise<string[]>;
}
