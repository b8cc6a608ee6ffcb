import { pause } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { Backoff } from '../../base/time.ts';
import { mayPass } from '../../errors.ts';
import type { KeyEvent, WatchOptions } from '../../v2/keys-api.ts';
import type { WaitEnd } from '../../v3/locks/deletion.ts';
import { retried } from './retry.ts';

const debug = createDebug('bridge');

/** Result of one read by a poll. */
export interface PollRead {
  /** Index of the store at the time of the read. */
  readonly index: number;
  /** The event that the poll waits for, if it has happened already. */
  readonly event: KeyEvent | undefined;
}

/**
 * Waits until a read shows the event: reads with `read`, waits with `change`, and reads again. Resolves to undefined, or rejects,
 * when the signal aborts.
 * @throws any error of the first read, and a later error that is permanent, such as a refused login. After others, reads again.
 */
export async function untilEvent<L extends PollRead>(
  read: () => Promise<L>,
  change: (last: L) => Promise<WaitEnd>,
  { signal, started }: Pick<WatchOptions, 'signal' | 'started'>,
): Promise<KeyEvent | undefined> {
  const backoff = new Backoff({ first: 100, most: 5000 });
  const rest = () => pause(backoff.next(), ...(signal ? [signal] : []));
  let hasBegun = false;
  let hasChanged = false;
  while (!signal?.aborted) {
    try {
      const seen = await (hasBegun ? read() : retried(read, signal));
      if (!hasBegun) started?.(seen.index);
      hasBegun = true;
      if (seen.event) return seen.event;
      // A change was reported, but the read shows no event. Pause, because this may repeat.
      if (hasChanged) await rest();
      const end = await change(seen);
      hasChanged = end === 'change';
      if (end === 'silence') backoff.reset();
      if (end === 'failure') await rest();
    } catch (error) {
      if (!hasBegun || signal?.aborted || !mayPass(error)) throw error;
      debug('poll failed, retrying: %s', error);
      await rest();
    }
  }
  return undefined;
}
