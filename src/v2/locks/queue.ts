import { EtcdKeyNotFound, type LockHolder } from '../../errors.ts';
import type { GetOptions, KeysApi, Node, Snapshot } from '../keys-api.ts';
import { sequenceOf } from '../paths.ts';

/** One place in the queue of a lock. */
export interface Contender {
  readonly key: string;
  /** What the entry carries: the uuid of its lock, after `shared:` and `id:<identity>:` where it has those. */
  readonly value: string;
  /** The number its key is named by: its rank, and its fencing token. */
  readonly sequence: bigint;
  /** Seconds left when listed; undefined when it never expires. */
  readonly ttl: number | undefined;
  readonly modifiedIndex: number;
  /** Another one than before where the key was removed and made again. */
  readonly createdIndex: number;
}

/** The queue of one lock, as one listing showed it. */
export interface Queue {
  /** In no particular order, as etcd lists them. */
  readonly entries: readonly Contender[];
  /** Index of the store at the listing: a watch goes on from here. */
  readonly index: number;
  readonly clusterId: string | undefined;
}

/** What a directory had, as one listing showed it. */
export interface Directory {
  readonly nodes: readonly Node[];
  readonly index: number;
  readonly clusterId: string | undefined;
}

/** Reads the queue of the lock at `path`; a lock nobody ever wanted has an empty one. */
export const readQueue = async (keys: KeysApi, path: string, options: GetOptions): Promise<Queue> =>
  queueAmong(await readDirectory(keys, path, { ...options, recursive: true }));

export const queueOf = (listing: Snapshot): Queue => queueAmong(directoryOf(listing));

const queueAmong = ({ nodes, index, clusterId }: Directory): Queue => ({
  entries: contendersAmong(nodes),
  index,
  clusterId,
});

const directoryOf = ({ node: { nodes }, index, clusterId }: Snapshot): Directory => ({ nodes, index, clusterId });

/** Reads a directory; one that was never made is empty. */
export async function readDirectory(keys: KeysApi, path: string, options: GetOptions): Promise<Directory> {
  try {
    return directoryOf(await keys.get(path, options));
  } catch (error) {
    if (!(error instanceof EtcdKeyNotFound)) throw error;
    return { nodes: [], index: error.index ?? 0, clusterId: keys.clusterId };
  }
}

/** Of what a lock's directory has, the files named by a number; nothing else is an entry of this lock. */
export function contendersAmong(nodes: readonly Node[]): Contender[] {
  const found: Contender[] = [];
  for (const node of nodes) {
    const contender = contenderOf(node);
    if (contender) found.push(contender);
  }
  return found;
}

/** First in line first, by the key names as text, which is python-etcd's order. */
export const inOrder = (entries: readonly Contender[]): Contender[] =>
  entries.toSorted((a, b) => (a.key < b.key ? -1 : 1));

/** Who owns the lock, as python-etcd sees it: the first in text order. */
export function holderOf({ entries }: Queue): LockHolder | undefined {
  let first: Contender | undefined;
  for (const entry of entries) if (!first || entry.key < first.key) first = entry;
  return first && { key: first.key, value: first.value, ttl: first.ttl };
}

/** Those that carry it, in order. */
export const withValue = ({ entries }: Queue, value: string): Contender[] =>
  inOrder(entries.filter((entry) => entry.value === value));

function contenderOf({ key, value, dir, ttl, modifiedIndex, createdIndex }: Node): Contender | undefined {
  const sequence = sequenceOf(key);
  if (dir || sequence === undefined) return undefined;
  return { key, value: value ?? '', sequence, ttl, modifiedIndex, createdIndex };
}
