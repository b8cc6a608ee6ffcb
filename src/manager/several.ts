import { Scope, sleep } from '../cancellation.ts';
import { show } from '../checks.ts';
import type { LockStore, QueueStore } from '../recipe/store.ts';
import { Backoff } from '../time.ts';
import { endAll, HoldOfSeveral } from './held-locks.ts';
import type { Hold } from './hold.ts';
import type { CheckedRequest } from './options.ts';
import { REQUEUE_AFTER } from './take.ts';

/** One lock of a request for several. */
export interface Part {
  readonly name: string;
  readonly queue: QueueStore;
}

type TakeOne = (part: Part, request: CheckedRequest) => Promise<Hold | undefined>;

/**
 * Checks the names of a request for several locks. Returns the locks in the order of the names.
 * @throws {TypeError | RangeError} for an invalid name, for no names, or for two names of one lock
 */
export function partsOf(store: LockStore, names: readonly string[]): readonly Part[] {
  if (names.length === 0) throw new RangeError('the list of lock names must not be empty');
  const parts = Array.from(names, (name) => ({ name, queue: store.queue(name) }));
  for (const [index, { name, queue }] of parts.entries()) {
    const same = parts.slice(0, index).find((other) => other.queue.path === queue.path);
    if (same) throw new RangeError(`lock names must differ, got ${show(same.name)} and ${show(name)}`);
  }
  return parts;
}

/**
 * Acquires the locks one after the other, in the order of their paths. Every request uses this order, so that requests cannot
 * deadlock. If a lock is lost while the request waits for a later one, releases all and begins again. Resolves to undefined if a
 * lock is taken and the request must not wait. Holds no lock unless it holds all.
 * @throws what `takeOne` throws
 */
export async function takeSeveral(
  parts: readonly Part[],
  request: CheckedRequest,
  takeOne: TakeOne,
): Promise<HoldOfSeveral | undefined> {
  const inOrder = parts.toSorted((one, other) => (one.queue.path < other.queue.path ? -1 : 1));
  const backoff = new Backoff(REQUEUE_AFTER);
  for (;;) {
    const holds = new Map<Part, Hold>();
    const scope = new Scope(request.signal);
    const end = () => endAll([...holds.values()]);
    try {
      for (const part of inOrder) {
        const hold = await takeOne(part, { ...request, signal: scope.signal });
        if (!hold) {
          await end();
          return undefined;
        }
        holds.set(part, hold);
        scope.abortWith(hold.held.signal);
      }
      for (const { held } of holds.values()) held.assertHeld();
      return new HoldOfSeveral(parts.flatMap((part) => holds.get(part) ?? []));
    } catch (error) {
      const { lost } = await end();
      if (lost === undefined || request.signal?.aborted || !mayRepeat(request)) throw error;
    } finally {
      scope.dispose();
    }
    await sleep(backoff.next(), request.signal);
  }
}

/**
 * Whether a request may begin again after it lost a lock. Not with an identity: another process with that identity may have
 * evicted the entry, and the two would evict each other for ever.
 */
const mayRepeat = ({ blocking, identity, deadline }: CheckedRequest): boolean =>
  blocking && identity === undefined && !deadline.passed;
