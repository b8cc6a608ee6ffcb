import { Scope, type Source } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { Deadline } from '../../base/time.ts';
import { longestSilence } from '../../recipe/entries/timing.ts';
import type { Obstacle } from '../../recipe/rules.ts';
import type { V3Entry } from '../answers.ts';
import type { V3Client } from '../client.ts';

const debug = createDebug('watch');

export interface WaitOptions {
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
export const untilDeleted = (client: V3Client, { key }: Pick<V3Entry, 'key'>, options: WaitOptions): Promise<WaitEnd> =>
  endOf(key, options, (watch) => client.requests.changed(key, watch));

/**
 * Waits until `count` of the obstacle's entries are gone, or may be gone.
 * @param path directory of the queue
 * @throws the reason of the signal
 */
export function untilVacated(
  client: V3Client,
  path: string,
  { among, count, nearest }: Obstacle<V3Entry>,
  options: WaitOptions,
): Promise<WaitEnd> {
  if (among.length === 1) return untilDeleted(client, nearest, options);
  const keys = among.map(({ key }) => key);
  return endOf(path, options, (watch) => client.requests.vacated(path, { keys, count, ...watch }));
}

async function endOf(
  watched: string,
  { since, ttl, signal }: WaitOptions,
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
