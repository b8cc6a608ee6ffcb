import { type LockMode, parseValue } from '../recipe/entries/entry-value.ts';
import { holdersAmong } from '../recipe/rules.ts';
import type { Entry, LockStore, Queue } from '../recipe/store.ts';

/** One entry of a queue, as `query()` reports it: the holder of a lock, or a waiter. */
export interface LockInfo {
  /** Name of the lock. */
  readonly name: string;
  /** How the entry asks for the lock. With a `limit`, the mode is `'exclusive'`, although others may hold the lock too. */
  readonly mode: LockMode;
  /** The `limit` option of the request that made the entry; undefined if it had none. */
  readonly limit: number | undefined;
  /** The uuid in the entry's value. Empty for locks of Go and Java. */
  readonly uuid: string;
  /** The `identity` option of the request that made the entry; undefined if it had none. */
  readonly identity: string | undefined;
  /** The `label` option of the request, by default `hostname:pid`; undefined if it had none, as with python-etcd. */
  readonly label: string | undefined;
  /** Key of the entry. */
  readonly key: string;
  /** Seconds until the entry expires unless it is renewed; undefined if it never expires. */
  readonly ttl: number | undefined;
}

/** The entries of one queue or of all queues, as `query()` reports them. */
export interface LockManagerSnapshot {
  /** The entries that hold their locks. */
  readonly held: readonly LockInfo[];
  /** The entries that wait, in the order in which they are served. */
  readonly pending: readonly LockInfo[];
}

/**
 * Returns the holders and waiters of one lock, or of all locks if `name` is undefined.
 * @throws {TypeError | RangeError} for an invalid name, before anything is sent
 */
export async function queryLocks(store: LockStore, name: string | undefined): Promise<LockManagerSnapshot> {
  const queues =
    name === undefined ? await store.list() : new Map([[name, await store.queue(name).read({ ttls: true })]]);
  const all = [...queues].map(([lock, queue]) => snapshotOf(lock, queue));
  return { held: all.flatMap(({ held }) => held), pending: all.flatMap(({ pending }) => pending) };
}

function snapshotOf(name: string, queue: Queue): LockManagerSnapshot {
  const infos = queue.inOrder().map((entry) => lockInfo(name, entry));
  const held = holdersAmong(infos);
  return { held, pending: infos.slice(held.length) };
}

export const lockInfo = (name: string, { key, value, ttl }: Entry): LockInfo => ({
  name,
  ...parseValue(value),
  key,
  ttl,
});
