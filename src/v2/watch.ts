import { createDebug } from '../debug.ts';
import type { KeyEvent, WatchOptions } from './keys-api.ts';
import { LONGEST_WAIT } from './requests.ts';
import { decodeEvent, decodeStart, encodeWatch, type WireAnswer, type WireRequest } from './wire.ts';

const debug = createDebug('watch');

interface Attempt {
  /** Seconds. */
  readonly timeout: number;
  /** To be told of the head of the answer. */
  readonly begun: (head: WireAnswer) => void;
}

/**
 * One long poll, given up after a while. Resumable: the next one begins `after` the index this one began at, or after
 * the event's, and etcd answers from its history what came in between.
 * @param send sends a request and resolves to its answer, or to undefined when there was none within the seconds given
 */
export async function longPoll(
  key: string,
  options: WatchOptions,
  send: (request: WireRequest, how: Attempt) => Promise<WireAnswer | undefined>,
): Promise<KeyEvent | undefined> {
  const { after, timeout = LONGEST_WAIT } = options;
  debug('watching %s after index %s', key, after ?? 'of its beginning');
  const begun = (head: WireAnswer) => {
    const index = options.started && decodeStart(head);
    if (index !== undefined) options.started?.(index);
  };
  const answer = await send(encodeWatch(key, options), { timeout, begun });
  const event = answer && decodeEvent(answer, key);
  const outcome = event ? `${event.action} of ${event.node.key} at ${event.index}` : `nothing within ${timeout} s`;
  debug('%s: %s', key, outcome);
  return event;
}
