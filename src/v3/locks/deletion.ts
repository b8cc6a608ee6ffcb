import { Scope, type Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { Deadline } from '../../time.ts';
import type { V3Entry } from '../answers.ts';
import type { V3Client } from '../client.ts';
import { longestSilence } from './timing.ts';

const debug = createDebug('watch');

export interface WaitOptions {
  /** The revision of the read that showed the entry: later changes are not missed. */
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
export async function untilDeleted(
  client: V3Client,
  { key, rawKey }: Pick<V3Entry, 'key' | 'rawKey'>,
  { since, ttl, signal }: WaitOptions,
): Promise<WaitEnd> {
  const over = new Scope(signal).abortAt(Deadline.after(longestSilence(ttl)), () => SILENT);
  try {
    await client.requests.changed(key, { rawKey, from: since + 1n, signal: over });
    return 'change';
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error === SILENT) return 'silence';
    debug('watch of %s failed: %s', key, error);
    return 'failure';
  } finally {
    over.dispose();
  }
}
