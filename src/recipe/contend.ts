import { orAborted, sleep } from '../cancellation.ts';
import { createDebug } from '../debug.ts';
import { Backoff } from '../time.ts';
import type { KeysApi } from '../v2/keys-api.ts';
import { isOurs, lost } from '../v2/locks/entry.ts';
import { type Contender, type Queue, readQueue } from '../v2/locks/queue.ts';
import type { Claim } from '../v2/locks/ticket.ts';
import { patience, Watch } from '../v2/locks/wait.ts';
import type { Call } from './attempt.ts';
import type { Lease } from './lease.ts';
import { removeLeftOvers } from './leftovers.ts';
import type { Rule } from './rules.ts';

const debug = createDebug('lock');

export interface Contest {
  /** Where the queue is. */
  readonly path: string;
  readonly rule: Rule;
  readonly lease: Lease;
  readonly claim: Claim;
  readonly call: Call;
  /** Whether an entry before ours was left by a process that is gone, and is to be removed. */
  readonly isLeftOver?: (entry: Contender) => boolean;
}

/**
 * The recipe: read the queue, let the rule decide, wait until the entry before ours changes, read again.
 *
 * Resolves to true when the lock is ours: a listing said so that held our entry and came before the lease's deadline. To
 * false when it is not our turn and waiting is not asked for.
 * @throws {EtcdLockExpired} when our entry is lost
 */
export async function contend(
  keys: KeysApi,
  { path, rule, lease, claim, call, isLeftOver = () => false }: Contest,
  blocking: boolean,
): Promise<boolean> {
  const { signal } = call;
  const watch = new Watch(keys, signal);
  const backoff = new Backoff();
  let quorum = false;
  /** Index of the last event: an older listing came from a member that lags behind the one that told of it. */
  let seen = 0;
  let attemptTimeout = patience(lease.place.ttl, 'event');
  const read = async (byQuorum: boolean): Promise<Queue> => {
    const fresh = await orAborted(claim.fresh(), signal);
    const listing = fresh ?? (await readQueue(keys, path, { quorum: byQuorum, signal, attemptTimeout }));
    call.saw(listing, lease.place.key);
    await claim.tidy(listing, { signal });
    return listing;
  };
  /** The rule compares keys only. A key that was removed and made again is not our entry: others may have held the lock in between. */
  const assertUnbroken = async ({ entries, clusterId }: Queue): Promise<void> => {
    const { place } = lease;
    const own = entries.find(({ key }) => key === place.key);
    if (own && clusterId === place.clusterId && !(await isOurs(keys, place, own, { signal })))
      throw lost(place, clusterId, 'its key was made again, or carries another value');
  };
  /** Keeps nothing of the queue but what it decides: a wait outlives many looks, and there may be thousands of both. */
  const look = async () => {
    const { entries, index, clusterId } = await call.persist(async () => {
      const listing = await read(quorum);
      const { sequence } = lease.place;
      const mayGo = (entry: Contender): boolean => entry.sequence < sequence && isLeftOver(entry);
      const queue = (await removeLeftOvers(keys, listing, mayGo, { signal })) ? await read(true) : listing;
      await assertUnbroken(queue);
      return queue;
    });
    lease.assertValid();
    const { place } = lease;
    return { place, decision: rule(entries, place.key), index, clusterId };
  };
  try {
    for (;;) {
      const { place, decision, index, clusterId } = await look();
      const lags =
        decision.state === 'gone' || clusterId !== place.clusterId || (decision.state === 'wait' && index < seen);
      if (lags && !quorum) {
        quorum = true;
        continue;
      }
      if (decision.state === 'gone' || clusterId !== place.clusterId) throw lost(place, clusterId, 'its key is gone');
      if (decision.state === 'held') return true;
      if (!blocking) return false;
      debug('%s waits for %s', place.key, decision.on.key);
      const woken = await watch.changed(decision.on.key, { after: index, ttl: place.ttl });
      if (woken.by === 'event') seen = woken.index;
      if (woken.by === 'trouble') await sleep(backoff.next(), signal);
      else backoff.reset();
      // Only an event is a reason to trust this member's own state; silence and trouble are reasons to doubt it.
      quorum = woken.by !== 'event';
      attemptTimeout = patience(place.ttl, woken.by);
    }
  } finally {
    watch.end();
  }
}
