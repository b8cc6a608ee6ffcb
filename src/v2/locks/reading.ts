import { EtcdKeyNotFound } from '../../errors.ts';
import type { Entry, Queue } from '../../recipe/store.ts';
import type { GetOptions, KeysApi, KeysCall, Node, Snapshot } from '../keys-api.ts';
import { sequenceOf } from '../paths.ts';

/** An entry on etcd v2. */
export interface V2Entry extends Entry {
  /** Changes with each write. */
  readonly modifiedIndex: number;
  /** Changes when the key is re-created, or written without a condition. */
  readonly createdIndex: number;
}

/** The contents of a directory, as one read showed them. */
export interface DirectoryListing {
  readonly nodes: readonly Node[];
  /** Index of the store at the time of the read: a watch from this index misses no event. */
  readonly index: number;
  readonly clusterId: string | undefined;
}

/** The queue of one lock, as one listing showed it. */
export class V2Queue implements Queue {
  readonly entries: readonly V2Entry[];
  readonly index: number;
  readonly clusterId: string | undefined;

  constructor({ nodes, index, clusterId }: DirectoryListing) {
    this.entries = entriesAmong(nodes);
    this.index = index;
    this.clusterId = clusterId;
  }

  inOrder(): V2Entry[] {
    return inOrder(this.entries);
  }

  /** The entry that python-etcd treats as the holder: the first by the text of its key. */
  get first(): V2Entry | undefined {
    let first: V2Entry | undefined;
    for (const entry of this.entries) if (!first || entry.key < first.key) first = entry;
    return first;
  }

  /** Returns the entries with this value, in the order of the queue. */
  withValue(value: string): V2Entry[] {
    return inOrder(this.entries.filter((entry) => entry.value === value));
  }
}

/** Reads the queue in the directory `path`. */
export const readQueue = async (keys: KeysApi, path: string, options: GetOptions): Promise<V2Queue> =>
  new V2Queue(await readDirectory(keys, path, { ...options, recursive: true }));

/** Reads a key by quorum. Resolves to undefined if it does not exist. */
export async function readKey(keys: KeysApi, key: string, options: KeysCall = {}): Promise<Snapshot | undefined> {
  try {
    return await keys.get(key, { ...options, quorum: true });
  } catch (error) {
    if (error instanceof EtcdKeyNotFound) return undefined;
    throw error;
  }
}

/** Reads a directory. Returns an empty listing if the directory does not exist. */
export async function readDirectory(keys: KeysApi, path: string, options: GetOptions): Promise<DirectoryListing> {
  try {
    return listingOf(await keys.get(path, options));
  } catch (error) {
    if (!(error instanceof EtcdKeyNotFound)) throw error;
    return { nodes: [], index: error.index ?? 0, clusterId: keys.clusterId };
  }
}

export const listingOf = ({ node: { nodes }, index, clusterId }: Snapshot): DirectoryListing => ({
  nodes,
  index,
  clusterId,
});

/** Returns the entries in a lock's directory: the files with a number as name. The lock ignores all other nodes. */
export function entriesAmong(nodes: readonly Node[]): V2Entry[] {
  const entries: V2Entry[] = [];
  for (const node of nodes) {
    const entry = entryOf(node);
    if (entry) entries.push(entry);
  }
  return entries;
}

/** Returns the entries in the order of the queue: sorted by the text of their keys, as python-etcd does. */
export const inOrder = <E extends Entry>(entries: readonly E[]): E[] =>
  entries.toSorted((a, b) => (a.key < b.key ? -1 : 1));

/** Returns the seconds that a key has left; undefined: it never expires. etcd leaves out a TTL of 0, until it removes the key. */
export const ttlOf = ({ ttl, expiration }: Node): number | undefined =>
  ttl ?? (expiration === undefined ? undefined : 0);

function entryOf(node: Node): V2Entry | undefined {
  const { key, value, dir, modifiedIndex, createdIndex } = node;
  const rank = sequenceOf(key);
  if (dir || rank === undefined) return undefined;
  return { key, value: value ?? '', rank, ttl: ttlOf(node), modifiedIndex, createdIndex };
}
