import { withCallersStack } from '../../base/callers-stack.ts';
import { Scope } from '../../base/cancellation.ts';
import { isAlone, parseValue, publishedIn } from '../../recipe/entries/entry-value.ts';
import { isOwn } from '../../recipe/entries/own-entries.ts';
import { followQueue } from '../../recipe/follow.ts';
import type { Entry, LockStore } from '../../recipe/store.ts';

/** The leader of an election, as others see it. */
export interface Leader {
  /** Name of the election. */
  readonly name: string;
  /** What the leader publishes: its `value` option. Undefined if it has none, as with python-etcd, Go and Java. */
  readonly value: string | undefined;
  /** The leader's `label` option, by default `hostname:pid`; undefined if it has none, as with python-etcd. */
  readonly label: string | undefined;
  /** The leader's `identity` option; undefined if it has none. */
  readonly identity: string | undefined;
  /** Key of the leader's entry. For candidates of this package, differs for each term. */
  readonly key: string;
  /**
   * Identifies the term of a candidate of this package: the same as the `uuid` of the leader's `Term`. Empty for the locks of Go and
   * Java. For Go's `Election`, the value of the leader.
   */
  readonly uuid: string;
  /**
   * Whether the entry was made by this process, which may have lost the leadership since the read: before work, call `assertHeld()`
   * of the term.
   */
  readonly own: boolean;
}

/**
 * Returns the leader of an election: the client whose entry is the first in the queue. Undefined if the queue is empty, or if several
 * requests may hold the lock together.
 * @param path directory of the queue
 */
export function leaderAmong(name: string, path: string, [first]: readonly Entry[]): Leader | undefined {
  if (!first) return undefined;
  const { key, value } = first;
  const { mode, limit, ...names } = parseValue(value);
  if (!isAlone({ mode, limit })) return undefined;
  return { name, key, ...names, value: publishedIn(value), own: isOwn({ path, value }) };
}

/** Yields the current leader, then each change of it, until the signal aborts or the client is closed. */
export async function* observeLeaders(
  store: LockStore,
  name: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Leader | undefined, void, void> {
  const ending = new Scope(signal, store.pending.closing);
  const { path } = store.queue(name);
  let last: string | undefined;
  try {
    ending.throwIfAborted();
    for await (const { survey } of followQueue(store.surveyor, name, { signal: ending, ttls: false })) {
      ending.throwIfAborted();
      const leader = leaderAmong(name, path, survey.queue.entries);
      const id = JSON.stringify([leader?.key, leader?.uuid, leader?.value]);
      if (id !== last) yield leader;
      last = id;
    }
  } catch (error) {
    throw withCallersStack(error, signal);
  } finally {
    ending.dispose();
  }
}
