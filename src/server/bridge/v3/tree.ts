import type { Node } from '../../../v2/keys-api.ts';
import type { V3Entry } from '../../../v3/answers.ts';
import { nameOf } from '../target.ts';

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

/**
 * Returns a directory as etcd v2 would show it. An unused directory is shown as empty, not as missing. So a waiter whose entry has
 * expired sees a queue without its entry, and not an error.
 * @param entries all entries below the directory, in the order of their creation
 * @param recursive whether to show the contents of its subdirectories
 */
export function directoryOf(path: string, entries: readonly V3Entry[], recursive: boolean, index: number): Node {
  const files: Node[] = [];
  const within = new Map<string, V3Entry[]>();
  for (const entry of entries) {
    const slash = entry.key.indexOf('/', path.length + 1);
    if (slash === -1) files.push(nodeOf(path, entry));
    else {
      const directory = entry.key.slice(0, slash);
      within.set(directory, [...(within.get(directory) ?? []), entry]);
    }
  }
  const directories = [...within].map(([key, below]) => directoryOf(key, recursive ? below : [], recursive, index));
  return { key: path, dir: true, createdIndex: index, modifiedIndex: index, nodes: [...files, ...directories] };
}
