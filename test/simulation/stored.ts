import { ALL, range } from '../server/v3/requests.ts';
import type { Cluster } from './cluster/cluster.ts';
import type { Scheduler } from './virtual/scheduler.ts';

/** A key of one of the two stores of a cluster. */
export interface Stored {
  readonly store: 'v2' | 'v3';
  /** Name of its cluster. */
  readonly cluster: string;
  readonly key: string;
  readonly value: string;
  /** Its place in the order of its queue. */
  readonly rank: bigint;
  /** When it was created: on v2 that is its rank, unless it was written without a condition since. */
  readonly created: bigint;
  /** Milliseconds until it expires at the earliest, by the clock of any member. */
  readonly left: number;
}

/** Whether a key is the record of a job, which stays for a day. */
const isRecord = (key: string): boolean => key.startsWith('/_locks_ticks');

/** Returns the keys of both stores, other than the records of jobs, as the newest member has them. */
export function storedIn(cluster: Cluster): Stored[] {
  const latest = Math.max(...cluster.members.map(({ process }) => process.wall()));
  const { leases } = cluster.v3.store;
  const onV2 = locksOnV2(cluster).map(({ key, value = '', expiration, createdIndex }) => ({
    store: 'v2' as const,
    cluster: cluster.name,
    key,
    value,
    rank: BigInt(/\d+$/.exec(key)?.[0] ?? -1),
    created: BigInt(createdIndex),
    left: expiration === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiration) - latest,
  }));
  const kvs = cluster.v3.store.range(range(ALL)).kvs.filter(({ key }) => !isRecord(key));
  const onV3 = kvs.map(({ key, value, create_revision: rank, lease }) => ({
    store: 'v3' as const,
    cluster: cluster.name,
    key,
    value,
    rank,
    created: rank,
    // In whole seconds, rounded down.
    left: lease === 0n ? Number.POSITIVE_INFINITY : Number((leases.status(lease)?.left ?? -1n) + 1n) * 1000,
  }));
  return [...onV2, ...onV3];
}

/** Returns a function that returns what {@link storedIn} does, and reads the stores once in each step of the world. */
export function storedAtEachStep(clusters: () => readonly Cluster[], scheduler: Scheduler): () => readonly Stored[] {
  let step = -1;
  let stored: readonly Stored[] = [];
  return () => {
    if (scheduler.steps !== step) stored = clusters().flatMap(storedIn);
    step = scheduler.steps;
    return stored;
  };
}

/**
 * Returns the keys of locks. A listing of "/" does not show them: their directory is hidden. Sorted, because the store would shuffle them
 * with the randomness of the process that is checked.
 */
function locksOnV2({ newest: { store } }: Cluster): V2Node[] {
  try {
    return filesBelow(store.get('/_locks', { recursive: true, sorted: true }));
  } catch (error) {
    if (error instanceof Error && /Key not found/.test(error.message)) return [];
    throw error;
  }
}

const directoryOf = (key: string): string => key.slice(0, key.lastIndexOf('/'));

/** Returns the entries of the queue that an entry is in. */
export const queueOf = ({ store, cluster, key }: Stored, stored: readonly Stored[]): Stored[] =>
  stored.filter((one) => one.store === store && one.cluster === cluster && directoryOf(one.key) === directoryOf(key));

interface V2Node {
  readonly key: string;
  readonly value?: string | undefined;
  readonly expiration?: string | undefined;
  readonly createdIndex: number;
  readonly dir: boolean;
  readonly nodes: readonly V2Node[];
}

const filesBelow = (node: V2Node): V2Node[] => (node.dir ? node.nodes.flatMap(filesBelow) : [node]);
