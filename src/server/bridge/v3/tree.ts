import type { Source } from '../../../base/cancellation.ts';
import { Turns } from '../../../base/time.ts';
import type { Node } from '../../../v2/keys-api.ts';
import { isBelow } from '../../../v2/paths.ts';
import type { V3Entry } from '../../../v3/rpc/entry.ts';
import { isServed, nameOf } from '../target.ts';

/** Returns an entry as etcd v2 would show it. */
export const nodeOf = (path: string, { rank, value, modified, ttl }: V3Entry): Node => ({
  key: `${path}/${nameOf(rank)}`,
  value,
  dir: false,
  ...(ttl === undefined ? {} : { ttl, expiration: new Date(Date.now() + ttl * 1000).toISOString() }),
  createdIndex: Number(rank),
  modifiedIndex: Number(modified),
  nodes: [],
});

/** Returns a removed entry as etcd v2 would show it. */
export const removedNode = ({ key, createdIndex }: Pick<Node, 'key' | 'createdIndex'>, revision: bigint): Node => ({
  key,
  dir: false,
  createdIndex,
  modifiedIndex: Number(revision),
  nodes: [],
});

/** What to show of a directory. */
export interface TreeOptions {
  readonly lockPrefix: string;
  /** Whether to show the contents of its subdirectories. */
  readonly recursive: boolean;
  /** Index of the store. */
  readonly index: number;
  /** Ends the work when it aborts. */
  readonly signal?: Source | undefined;
}

interface Directory extends Node {
  readonly nodes: Node[];
}

/**
 * Returns a directory as etcd v2 would show it: its entries in the order of their creation, then its subdirectories. An unused
 * directory is shown as empty, not as missing. So a waiter whose entry has expired sees a queue without its entry, and not an error.
 * Leaves out the entries of locks whose names a bridge refuses; see {@link isServed}. Gives way to other requests.
 * @param entries all entries below the directory
 */
export async function directoryOf(
  path: string,
  entries: readonly V3Entry[],
  { lockPrefix, recursive, index, signal }: TreeOptions,
): Promise<Node> {
  const top = directoryAt(path, index);
  const directories = new Map([[path, top]]);
  const turns = new Turns(signal);
  for (const entry of entries) {
    const pause = turns.step();
    if (pause) await pause;
    const parent = entry.key.slice(0, entry.key.lastIndexOf('/'));
    if (!isBelow(entry.key, path) || (!directories.has(parent) && !isServed(parent, lockPrefix))) continue;
    if (recursive || parent === path) within(directories, parent, index).nodes.push(nodeOf(parent, entry));
    else within(directories, entry.key.slice(0, entry.key.indexOf('/', path.length + 1)), index);
  }
  for (const { nodes } of directories.values()) {
    const pause = turns.step();
    if (pause) await pause;
    nodes.sort((one, other) => Number(one.dir) - Number(other.dir) || one.createdIndex - other.createdIndex);
  }
  return top;
}

const directoryAt = (key: string, index: number): Directory => ({
  key,
  dir: true,
  createdIndex: index,
  modifiedIndex: index,
  nodes: [],
});

/** Returns the directory with this path. If it is not among these, adds it, and those between it and one of these. */
function within(directories: Map<string, Directory>, path: string, index: number): Directory {
  const known = directories.get(path);
  if (known) return known;
  const added = directoryAt(path, index);
  let child = added;
  let parent: Directory | undefined;
  while (!parent) {
    directories.set(child.key, child);
    const above = child.key.slice(0, child.key.lastIndexOf('/'));
    parent = directories.get(above);
    const directory = parent ?? directoryAt(above, index);
    directory.nodes.push(child);
    child = directory;
  }
  return added;
}
