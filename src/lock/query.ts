import { EtcdKeyNotFound } from '../errors.ts';
import type { KeysApi, Node } from '../keys/api.ts';
import { checkLockName } from '../keys/paths.ts';
import { type LockMode, parseValue } from './entry-value.ts';
import { contendersAmong } from './queue.ts';

/** One entry in the queue of a lock. */
export interface LockInfo {
  readonly name: string;
  readonly mode: LockMode;
  readonly uuid: string;
  /** What the process that queued it calls itself, if anything. */
  readonly identity: string | undefined;
  readonly key: string;
  /** Seconds until it expires unless renewed; undefined when it never does. */
  readonly ttl: number | undefined;
}

export interface LockManagerSnapshot {
  readonly held: readonly LockInfo[];
  readonly pending: readonly LockInfo[];
}

/**
 * Reads, by quorum, the queue of one lock or of all below the prefix.
 * @throws {TypeError | RangeError} for a bad name, before any request
 */
export async function queryLocks(keys: KeysApi, name: string | undefined): Promise<LockManagerSnapshot> {
  if (name !== undefined) checkLockName(name);
  const queues =
    name === undefined
      ? (await childrenOf(keys, keys.lockPrefix)).flatMap((node) => queuesBelow(keys, node))
      : [infosOf(name, await childrenOf(keys, `${keys.lockPrefix}/${name}`))];
  const split = queues.map(splitUp);
  return { held: split.flatMap(({ held }) => held), pending: split.flatMap(({ pending }) => pending) };
}

/** The first in line, and with it all others where only sharing ones stand between. */
function splitUp(queue: readonly LockInfo[]): LockManagerSnapshot {
  const alone = queue.findIndex(({ mode }) => mode === 'exclusive');
  const holders = alone < 0 ? queue.length : Math.max(alone, 1);
  return { held: queue.slice(0, holders), pending: queue.slice(holders) };
}

async function childrenOf(keys: KeysApi, path: string): Promise<readonly Node[]> {
  try {
    return (await keys.get(path, { recursive: true, sorted: true, quorum: true })).node.nodes;
  } catch (error) {
    if (error instanceof EtcdKeyNotFound) return [];
    throw error;
  }
}

/** Each directory is a lock, also one inside another. */
function queuesBelow(keys: KeysApi, { key, dir, nodes }: Node): LockInfo[][] {
  if (!dir) return [];
  const name = key.slice(keys.lockPrefix.length + 1);
  return [infosOf(name, nodes), ...nodes.flatMap((node) => queuesBelow(keys, node))];
}

const infosOf = (name: string, nodes: readonly Node[]): LockInfo[] =>
  contendersAmong(nodes).map(({ key, value, ttl }) => ({ name, ...parseValue(value), key, ttl }));
