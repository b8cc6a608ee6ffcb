/** Parts of the reads of one queue or all queues for observers, which are by quorum. They show more than the recipe needs. */
import { type LockQueue, type ParsedEntry, parsed, type ReadAt } from '../../recipe/survey.ts';
import type { KeysApi, Node } from '../keys-api.ts';
import { baseName, checkLockName } from '../paths.ts';
import { entriesAmong, inOrder, readDirectory, type V2Entry, V2Queue } from './reading.ts';

export const BY_QUORUM = { recursive: true, sorted: true, quorum: true } as const;

/** Reads the queues of all locks. Returns them by lock name. */
export async function readQueues(keys: KeysApi): Promise<ReadonlyMap<string, V2Queue>> {
  const { directories, ...readAt } = await readLockDirectories(keys, '');
  return new Map(locksIn(keys, directories).map(([name, { nodes }]) => [name, new V2Queue({ ...readAt, nodes })]));
}

/** Returns these directories and all below them, each with the name of its lock. */
export const locksIn = (keys: KeysApi, directories: readonly Node[]): (readonly [name: string, directory: Node])[] =>
  directories.flatMap(directoriesFrom).map((node) => [lockNameOf(keys, node), node]);

/**
 * Reads the deepest directory that contains all locks whose name begins with `prefix`. Returns the directories in it, with all
 * that is below them. Some may belong to locks with other names.
 * @throws {RangeError} if no lock name can begin with `prefix`; thrown before any request
 */
export async function readLockDirectories(
  keys: KeysApi,
  prefix: string,
): Promise<ReadAt & { readonly directories: readonly Node[] }> {
  const above = checkPrefix(prefix);
  const path = above === undefined ? keys.lockPrefix : `${keys.lockPrefix}/${above}`;
  const { nodes, ...readAt } = await readDirectory(keys, path, BY_QUORUM);
  return { directories: nodes.filter(({ dir }) => dir), ...readAt };
}

/**
 * Returns the directory, below the lock prefix, that contains all locks whose name begins with `prefix`. undefined if that is
 * the directory of the lock prefix itself.
 * @throws {RangeError} if no lock name can begin with `prefix`
 */
export function checkPrefix(prefix: string): string | undefined {
  const end = prefix.lastIndexOf('/');
  if (end < 0) return undefined;
  const above = prefix.slice(0, end);
  checkLockName(above);
  return above;
}

/** Returns the name of the lock with this directory. */
export const lockNameOf = (keys: KeysApi, { key }: Pick<Node, 'key'>): string => key.slice(keys.lockPrefix.length + 1);

/** Parses the entries among the nodes of a lock's directory. Returns them in the order of the queue. */
export const parsedEntriesAmong = (name: string, nodes: readonly Node[]): (V2Entry & ParsedEntry)[] =>
  inOrder(entriesAmong(nodes)).map((entry) => parsed(name, entry));

/** Returns a directory and all directories below, parents first. Not recursive, because they may be nested very deep. */
export function directoriesFrom(top: Node): Node[] {
  const found: Node[] = [];
  const ahead = [top];
  for (let node = ahead.pop(); node; node = ahead.pop()) {
    found.push(node);
    for (const child of node.nodes.toReversed()) if (child.dir) ahead.push(child);
  }
  return found;
}

/** Returns the queue of one lock, with the nodes of its directory. */
export function queueAmong(name: string, path: string, nodes: readonly Node[]): LockQueue {
  const entries = parsedEntriesAmong(name, nodes);
  const known = new Set(entries.map(({ key }) => key));
  const ignored = nodes.filter(({ key, dir }) => !dir && !known.has(key)).map(({ key }) => key);
  return { name, path, entries, ignored: ignored.sort((a, b) => (baseName(a) < baseName(b) ? -1 : 1)) };
}
