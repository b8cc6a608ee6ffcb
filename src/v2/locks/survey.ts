/** Reads of one or all queues for people, by quorum: the command line shows more of them than the recipe needs. */
import { type EntryValue, parseValue } from '../../recipe/entry-value.ts';
import type { CallOptions, KeysApi, Node } from '../keys-api.ts';
import { baseName, checkLockName } from '../paths.ts';
import { entriesAmong, inOrder, type Listing, readDirectory, type V2Entry, V2Queue } from './reading.ts';

/** An entry with the name of its lock and what its value says. */
export interface ParsedEntry extends V2Entry, EntryValue {
  /** The lock's. */
  readonly name: string;
}

/** The queue of a lock, and what else its directory has. */
export interface LockQueue {
  readonly name: string;
  /** Those served first first. */
  readonly entries: readonly ParsedEntry[];
  /** Keys of other files in the directory, which no lock heeds. */
  readonly strangers: readonly string[];
}

/** What the reads here have in common: the index of the store, and the cluster that answered. */
type ReadAt = Omit<Listing, 'nodes'>;

export interface QueueSurvey extends ReadAt {
  readonly queue: LockQueue;
}

export interface QueuesSurvey extends ReadAt {
  readonly queues: readonly LockQueue[];
}

const BY_QUORUM = { recursive: true, sorted: true, quorum: true } as const;

/**
 * Reads the queue of one lock.
 * @throws {TypeError | RangeError} for a bad name, before any request
 */
export async function surveyLock(keys: KeysApi, name: string, options: CallOptions = {}): Promise<QueueSurvey> {
  checkLockName(name);
  const { nodes, ...readAt } = await readDirectory(keys, `${keys.lockPrefix}/${name}`, { ...options, ...BY_QUORUM });
  return { queue: queueAmong(name, nodes), ...readAt };
}

/**
 * Reads, in one listing, the queues of all locks whose name begins with `beginning`. etcd does not list names with a part
 * that begins with "_", unless `beginning` names that part with a "/" behind it.
 * @throws {RangeError} for a beginning that no name can have, before any request
 */
export async function surveyLocks(keys: KeysApi, beginning = ''): Promise<QueuesSurvey> {
  const { tops, ...readAt } = await readLockDirectories(keys, beginning);
  const queues = tops.flatMap(directoriesFrom).map((node) => queueAmong(lockNameOf(keys, node), node.nodes));
  return { queues: queues.filter(({ name }) => name.startsWith(beginning)), ...readAt };
}

/** Reads the queues of all locks, by name. */
export async function readQueues(keys: KeysApi): Promise<ReadonlyMap<string, V2Queue>> {
  const { tops, ...readAt } = await readLockDirectories(keys, '');
  const directories = tops.flatMap(directoriesFrom);
  return new Map(directories.map((node) => [lockNameOf(keys, node), new V2Queue({ ...readAt, nodes: node.nodes })]));
}

/** Reads the topmost directories below which the name of a lock may begin so. */
export async function readLockDirectories(
  keys: KeysApi,
  beginning: string,
): Promise<ReadAt & { readonly tops: readonly Node[] }> {
  const above = checkBeginning(beginning);
  const path = above === undefined ? keys.lockPrefix : `${keys.lockPrefix}/${above}`;
  const { nodes, ...readAt } = await readDirectory(keys, path, BY_QUORUM);
  return { tops: nodes.filter(({ dir }) => dir), ...readAt };
}

/**
 * Returns the name of the directory that holds all names with this beginning, if there is one below the lock prefix.
 * @throws {RangeError} for a beginning that no name can have
 */
export function checkBeginning(beginning: string): string | undefined {
  const end = beginning.lastIndexOf('/');
  if (end < 0) return undefined;
  const above = beginning.slice(0, end);
  checkLockName(above);
  return above;
}

/** Returns the name of the lock with this directory. */
export const lockNameOf = (keys: KeysApi, { key }: Pick<Node, 'key'>): string => key.slice(keys.lockPrefix.length + 1);

/** Parses the entries among the nodes of a lock's directory; those served first first. */
export const parsedEntriesAmong = (name: string, nodes: readonly Node[]): ParsedEntry[] =>
  inOrder(entriesAmong(nodes)).map((entry) => ({ name, ...entry, ...parseValue(entry.value) }));

/**
 * Returns how many changes of the whole store ago an entry was appended: since etcd 2.2 the number in its name is the index
 * of the append. (Its `createdIndex` changes with python-etcd's renewals.) undefined if the name is no such number.
 */
export function ageOf({ rank }: V2Entry, index: number): number | undefined {
  const age = BigInt(index) - rank;
  return age < 0n ? undefined : Number(age);
}

/** Returns a directory and all below it, each before those in it. Not recursive: they may be nested very deep. */
export function directoriesFrom(top: Node): Node[] {
  const found: Node[] = [];
  const ahead = [top];
  for (let node = ahead.pop(); node; node = ahead.pop()) {
    found.push(node);
    for (const child of node.nodes.toReversed()) if (child.dir) ahead.push(child);
  }
  return found;
}

function queueAmong(name: string, nodes: readonly Node[]): LockQueue {
  const entries = parsedEntriesAmong(name, nodes);
  const known = new Set(entries.map(({ key }) => key));
  const strangers = nodes.filter(({ key, dir }) => !dir && !known.has(key)).map(({ key }) => key);
  return { name, entries, strangers: strangers.sort((a, b) => (baseName(a) < baseName(b) ? -1 : 1)) };
}
