import { Scope, type Source } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { Deadline } from '../../base/time.ts';
import { longestSilence } from '../../recipe/entries/timing.ts';
import type { Obstacle } from '../../recipe/rules.ts';
import type { V3Entry } from '../rpc/entry.ts';
import type { WatchRequests } from '../rpc/watches.ts';

const debug = createDebug('watch');

export interface DeletionWait {
  /** The revision of the read that showed the entries: later changes are not missed. */
  readonly since: bigint;
  /** TTL of the own entry, in seconds; null: it never expires. */
  readonly ttl: number | null;
  readonly signal: Source | undefined;
}

/** Abort reason of a watch that has reported nothing for so long that its member may be down. */
const SILENT = new Error('no event in time');

/** How a wait ended. `silence`: without an event for so long that the queue must be read again. */
export type WaitEnd = 'change' | 'silence' | 'failure';

/**
 * Waits until an entry is gone or may be gone.
 * @throws the reason of the signal
 */
export const untilDeleted = (
  watches: WatchRequests,
  { key }: Pick<V3Entry, 'key'>,
  options: DeletionWait,
): Promise<WaitEnd> => endOf(key, options, (watch) => watches.changed(key, watch));

/**
 * Waits until `count` of the obstacle's entries are gone, or may be gone.
 * @param path directory of the queue
 * @throws the reason of the signal
 */
export function untilVacated(
  watches: WatchRequests,
  path: string,
  { among, count, nearest }: Obstacle<V3Entry>,
  options: DeletionWait,
): Promise<WaitEnd> {
  if (among.length === 1) return untilDeleted(watches, nearest, options);
  const keys = among.map(({ key }) => key);
  return endOf(path, options, (watch) => watches.vacated(path, { keys, count, ...watch }));
}

async function endOf(
  watched: string,
  { since, ttl, signal }: DeletionWait,
  begin: (watch: { from: bigint; signal: Source }) => Promise<void>,
): Promise<WaitEnd> {
  const over = new Scope(signal).abortAt(Deadline.after(longestSilence(ttl)), () => SILENT);
  try {
    await begin({ from: since + 1n, signal: over });
    return 'change';
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error === SILENT) return 'silence';
    debug('watch of %s failed: %s', watched, error);
    return 'failure';
  } finally {
    over.dispose();
  }
}
