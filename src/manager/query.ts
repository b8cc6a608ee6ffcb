import { type LockMode, parseValue } from '../recipe/entry-value.ts';
import { holdersAmong } from '../recipe/rules.ts';
import type { LockStore, Queue } from '../recipe/store.ts';

/** What `query()` says of one entry. */
export interface LockInfo {
  /** The lock's. */
  readonly name: string;
  readonly mode: LockMode;
  readonly uuid: string;
  /** The identity of the process that made the entry, if it has one. */
  readonly identity: string | undefined;
  readonly key: string;
  /** Seconds until the entry expires unless renewed; undefined if it never does. */
  readonly ttl: number | undefined;
}

export interface LockManagerSnapshot {
  readonly held: readonly LockInfo[];
  readonly pending: readonly LockInfo[];
}

/**
 * Reads the queue of one lock, or of all.
 * @throws {TypeError | RangeError} for a bad name, before any request
 */
export async function queryLocks(store: LockStore, name: string | undefined): Promise<LockManagerSnapshot> {
  const queues = name === undefined ? await store.list() : new Map([[name, await store.queue(name).read()]]);
  const all = [...queues].map(([lock, queue]) => snapshotOf(lock, queue));
  return { held: all.flatMap(({ held }) => held), pending: all.flatMap(({ pending }) => pending) };
}

function snapshotOf(name: string, queue: Queue): LockManagerSnapshot {
  const infos = queue.inOrder().map(({ key, value, ttl }): LockInfo => ({ name, ...parseValue(value), key, ttl }));
  const held = holdersAmong(infos);
  return { held, pending: infos.slice(held.length) };
}
