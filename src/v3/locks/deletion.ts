import { Scope, type Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { Deadline } from '../../time.ts';
import type { V3Client } from '../client.ts';
import type { V3Entry } from '../requests.ts';
import { longestSilence } from './timing.ts';

const debug = createDebug('watch');

export interface WaitOptions {
  /** The revision of the read that showed the entry: later changes are not missed. */
  readonly since: bigint;
  /** TTL of the own entry, in seconds; null: it never expires. */
  readonly ttl: number | null;
  readonly signal: Source | undefined;
}

/** Ends a watch that has shown nothing for so long that its member may be down. */
const SILENT = new Error('no event in time');

/**
 * Waits until an entry is gone, or until its queue must be read again because nothing has been heard for long. Resolves to false
 * if the watch failed, so that the caller pauses before it reads.
 * @throws the reason of the signal
 */
export async function untilDeleted(
  client: V3Client,
  { key, rawKey }: Pick<V3Entry, 'key' | 'rawKey'>,
  { since, ttl, signal }: WaitOptions,
): Promise<boolean> {
  const over = new Scope(signal).abortAt(Deadline.after(longestSilence(ttl)), () => SILENT);
  try {
    await client.requests.changed(key, { rawKey, from: since + 1n, signal: over });
    return true;
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error === SILENT) return true;
    debug('watch of %s failed: %s', key, error);
    return false;
  } finally {
    over.dispose();
  }
}
