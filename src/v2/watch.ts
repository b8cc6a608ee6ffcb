import createDebug from 'debug';
import type { KeyEvent, WatchOptions } from '../keys/api.ts';
import { decodeEvent, encodeWatch, type WireAnswer, type WireRequest } from './wire.ts';

const debug = createDebug('etcd-v2-lock:watch');

/** Seconds a long poll may stay silent: nothing on the server bounds it, and a half-open connection never speaks again. */
const LONGEST_POLL = 20;

/**
 * One long poll, given up after a while. Resumable: the next one begins `after` the index this one began at, or after
 * the event's, and etcd answers from its history what came in between.
 * @param send sends a request and resolves to its answer, or to undefined when there was none within the seconds given
 */
export async function longPoll(
  key: string,
  options: WatchOptions,
  send: (request: WireRequest, timeout: number) => Promise<WireAnswer | undefined>,
): Promise<KeyEvent | undefined> {
  const { after, timeout = LONGEST_POLL } = options;
  debug('watching %s after index %d', key, after);
  const answer = await send(encodeWatch(key, options), timeout);
  const event = answer && decodeEvent(answer);
  debug(event ? `${event.action} of ${event.node.key} at ${event.index}` : `nothing on ${key} within ${timeout} s`);
  return event;
}
