import { type EntryValue, parseValue } from '../recipe/entry-value.ts';
import type { CallOptions, KeysApi, Node } from '../v2/keys-api.ts';
import { type Contender, contendersAmong, inOrder, readDirectory } from '../v2/locks/queue.ts';
import { baseName, checkLockName } from '../v2/paths.ts';

/** A place in the queue of a lock, with what its value says. */
export interface QueueEntry extends Contender, EntryValue {
  /** The lock's. */
  readonly name: string;
}

/** The queue of a lock, and what else its directory has. */
export interface LockQueue {
  readonly name: string;
  /** In their order, which is that of the key names as text. */
  readonly entries: readonly QueueEntry[];
  /** Keys of files that no lock heeds, since no number names them. */
  readonly strangers: readonly string[];
}

/** What one listing showed, at one index of the store. */
interface Listing {
  readonly index: number;
  readonly clusterId: string | undefined;
}

export interface QueueSurvey extends Listing {
  readonly queue: LockQueue;
}

export interface QueuesSurvey extends Listing {
  readonly queues: readonly LockQueue[];
}

const BY_QUORUM = { recursive: true, sorted: true, quorum: true } as const;

/**
 * Reads the queue of one lock by quorum.
 * @throws {TypeError | RangeError} for a bad name, before any request
 */
export async function surveyLock(keys: KeysApi, name: string, options: CallOptions = {}): Promise<QueueSurvey> {
  checkLockName(name);
  const { nodes, ...listing } = await readDirectory(keys, `${keys.lockPrefix}/${name}`, { ...options, ...BY_QUORUM });
  return { queue: queueAmong(name, nodes), ...listing };
}

/**
 * Reads by quorum, in one listing, the queues of all locks whose name begins so. etcd does not list what has a part that
 * begins with "_", unless that part is named with a "/" behind it.
 * @throws {RangeError} for a beginning that no name can have, before any request
 */
export async function surveyLocks(keys: KeysApi, beginning = ''): Promise<QueuesSurvey> {
  const { tops, ...listing } = await readLockDirectories(keys, beginning);
  const queues = tops.flatMap((top) => queuesBelow(keys, top));
  return { queues: queues.filter(({ name }) => name.startsWith(beginning)), ...listing };
}

/** Reads by quorum the uppermost directories below which a lock's name may begin so. */
export async function readLockDirectories(
  keys: KeysApi,
  beginning: string,
): Promise<Listing & { readonly tops: readonly Node[] }> {
  const above = checkBeginning(beginning);
  const path = above === undefined ? keys.lockPrefix : `${keys.lockPrefix}/${above}`;
  const { nodes, ...listing } = await readDirectory(keys, path, BY_QUORUM);
  return { tops: nodes.filter(({ dir }) => dir), ...listing };
}

/**
 * The name of the directory that names with this beginning are below, if any.
 * @throws {RangeError} for a beginning that no name can have
 */
export function checkBeginning(beginning: string): string | undefined {
  const end = beginning.lastIndexOf('/');
  if (end < 0) return undefined;
  const above = beginning.slice(0, end);
  checkLockName(above);
  return above;
}

/** The lock whose directory it is. */
export const lockNameOf = (keys: KeysApi, { key }: Pick<Node, 'key'>): string => key.slice(keys.lockPrefix.length + 1);

/** Those that hold the lock: the first in line, and with it all others where only sharing ones stand between. */
export function holdersAmong<E extends Pick<EntryValue, 'mode'>>(queue: readonly E[]): readonly E[] {
  const alone = queue.findIndex(({ mode }) => mode === 'exclusive');
  return queue.slice(0, alone < 0 ? queue.length : Math.max(alone, 1));
}

export const entriesAmong = (name: string, nodes: readonly Node[]): QueueEntry[] =>
  inOrder(contendersAmong(nodes)).map((contender) => ({ name, ...contender, ...parseValue(contender.value) }));

/**
 * How many changes of the whole store ago an entry was queued: since etcd 2.2 the number in its name is the index of the
 * append. (Its `createdIndex` is not: python-etcd's renewal gives a new one.) Undefined where the name is no such number.
 */
export function ageOf({ sequence }: Contender, index: number): number | undefined {
  const age = BigInt(index) - sequence;
  return age < 0n ? undefined : Number(age);
}

/** Each directory is a lock, also one inside another. */
const queuesBelow = (keys: KeysApi, top: Node): LockQueue[] =>
  directoriesFrom(top).map((node) => queueAmong(lockNameOf(keys, node), node.nodes));

/** The directory and all that are in it, each before those in it. Not by recursion: they may be nested very deep. */
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
  const entries = entriesAmong(name, nodes);
  const known = new Set(entries.map(({ key }) => key));
  const strangers = nodes.filter(({ key, dir }) => !dir && !known.has(key)).map(({ key }) => key);
  return { name, entries, strangers: strangers.sort((a, b) => (baseName(a) < baseName(b) ? -1 : 1)) };
}
