import { createDebug } from '../base/debug.ts';
import type { KeyEvent, WatchOptions } from './keys-api.ts';
import { LONGEST_WAIT } from './requests.ts';
import { decodeEvent, decodeStart, encodeWatch, type WireAnswer, type WireRequest } from './wire.ts';

const debug = createDebug('watch');

interface PollOptions {
  /** Seconds. */
  readonly timeout: number;
  /** To be called when the headers have arrived, with an answer whose body is still empty. */
  readonly onHeaders: (head: WireAnswer) => void;
}

/**
 * Makes one long poll. To continue, poll again with the index of the event as `after`: etcd keeps a history of events, so none
 * is missed. Without an event, read the key first.
 * @param send sends a request; resolves to its answer, or to undefined if none came within the timeout
 */
export async function longPoll(
  key: string,
  options: WatchOptions,
  send: (request: WireRequest, options: PollOptions) => Promise<WireAnswer | undefined>,
): Promise<KeyEvent | undefined> {
  const { after, timeout = LONGEST_WAIT } = options;
  debug('watching %s after index %s', key, after ?? '(current)');
  const onHeaders = (head: WireAnswer) => {
    const index = options.started && decodeStart(head);
    if (index !== undefined) options.started?.(index);
  };
  const answer = await send(encodeWatch(key, options), { timeout, onHeaders });
  const event = answer && decodeEvent(answer, key);
  const outcome = event ? `${event.action} of ${event.node.key} at index ${event.index}` : 'ended without an event';
  debug('watched %s: %s', key, outcome);
  return event;
}
