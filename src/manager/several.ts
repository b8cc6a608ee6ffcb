import { withCallersStack } from '../base/callers-stack.ts';
import { Scope, sleep } from '../base/cancellation.ts';
import { show } from '../base/checks.ts';
import { Backoff } from '../base/time.ts';
import { EtcdClusterIdChanged, EtcdLockLost, failuresOf } from '../errors.ts';
import { timedOut } from '../recipe/attempt.ts';
import { lost } from '../recipe/entries/lost.ts';
import type { LockStore, QueueStore } from '../recipe/store.ts';
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

/** A request for several locks. */
export interface Several {
  readonly store: LockStore;
  readonly parts: readonly Part[];
  readonly request: CheckedRequest;
}

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
 * Acquires the locks one after the other, in the byte order of their paths. Every request uses this order, so requests never
 * wait for each other in a circle. If a lock is lost while the request waits for a later one, releases all locks and begins
 * again. Resolves to undefined if a lock is taken and the request must not wait. Holds no lock unless it holds all.
 * @throws what `takeOne` throws
 * @throws {EtcdLockLost} if a lock is lost, and the request may not begin again
 * @throws {EtcdClusterIdChanged} if another cluster answers
 */
export async function takeSeveral(
  { store, parts, request }: Several,
  takeOne: TakeOne,
): Promise<HoldOfSeveral | undefined> {
  const { signal, deadline } = request;
  const { closing } = store.pending;
  const inOrder = parts
    .map((part) => ({ part, bytes: Buffer.from(part.queue.path) }))
    .toSorted((one, other) => Buffer.compare(one.bytes, other.bytes))
    .map(({ part }) => part);
  const backoff = new Backoff(REQUEUE_AFTER);
  for (;;) {
    let loss: unknown;
    const holds = new Map<Part, Hold>();
    const end = () => endAll([...holds.values()], deadline);
    /** Aborts when a lock is lost. Created with the first hold, because very many requests may wait for that. */
    let scope: Scope | undefined;
    try {
      for (const part of inOrder) {
        const hold = await takeOne(part, scope ? { ...request, signal: scope.signal } : request);
        if (!hold) {
          await end();
          return undefined;
        }
        holds.set(part, hold);
        scope = (scope ?? new Scope(signal)).abortWith(hold.held.signal);
      }
      return allOf(parts.flatMap((part) => holds.get(part) ?? []));
    } catch (error) {
      const ending = await end();
      loss = ending.lost;
      if (signal?.aborted) throw signal.reason;
      if (closing.aborted) throw withCallersStack(closing.reason);
      const changed = [error, causeOf(ending.lost)].find((one) => one instanceof EtcdClusterIdChanged);
      if (changed || ending.lost === undefined || !mayRepeat(request)) throw withCallersStack(changed ?? error);
    } finally {
      scope?.dispose();
    }
    await pauseOf({ store, parts: inOrder, request }, backoff.next(), loss);
  }
}

/**
 * Sleeps before the request begins again.
 * @param loss why it must begin again
 * @throws the reason why the request ended, if it ends during the sleep
 */
async function pauseOf({ store, parts, request }: Several, milliseconds: number, loss: unknown): Promise<void> {
  const { signal, deadline } = request;
  const paths = parts.map(({ queue }) => queue.path).join(', ');
  const trouble = loss instanceof Error ? loss : undefined;
  const reason = failuresOf(trouble).length > 0 ? 'unreachable' : 'held';
  const late = () => timedOut(paths, request, { reason, trouble });
  const over = new Scope(signal, store.pending.closing).abortAt(deadline, late);
  try {
    await sleep(milliseconds, over);
  } catch (error) {
    throw withCallersStack(error, signal);
  } finally {
    over.dispose();
  }
}

/**
 * Returns the holds of one request, in the order in which the caller gets them.
 * @throws {EtcdLockLost} if one is lost
 * @throws {EtcdClusterIdChanged} if they are not all in one cluster
 */
function allOf(holds: readonly Hold[]): HoldOfSeveral {
  for (const { held } of holds) held.assertHeld();
  const clusterId = holds[0]?.entry.clusterId;
  const other = holds.find(({ entry }) => entry.clusterId !== clusterId);
  if (other) throw lost(other.entry, clusterId, '');
  return new HoldOfSeveral(holds);
}

const causeOf = (loss: unknown): unknown => (loss instanceof EtcdLockLost ? loss.cause : undefined);

/**
 * Whether a request may begin again after it lost a lock. Not with an identity: another process with that identity may have
 * evicted the entry, and the two would evict each other for ever.
 */
const mayRepeat = ({ blocking, identity }: CheckedRequest): boolean => blocking && identity === undefined;
