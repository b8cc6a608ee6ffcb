import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { EtcdEventIndexCleared } from '../errors.ts';
import type { KeyEvent, KeysApi } from '../keys/api.ts';
import { encodeEventLine, encodeWaiting, type KeysRequest } from '../v2/wire.ts';

export interface WaitContext {
  /** Aborts when the client has gone. */
  readonly hangUp: AbortSignal;
  /** Called when the store has taken the wait up, before the headers are sent. */
  readonly begin: () => void;
}

export type Wait = Extract<KeysRequest, { call: 'watch' }>;

/**
 * Answers a wait: the headers at once, a line for the event (for every event of a stream) when it comes. Nothing but the
 * client bounds it.
 */
export async function serveWait(
  keys: KeysApi,
  wait: Wait,
  response: ServerResponse,
  { hangUp, begin }: WaitContext,
): Promise<void> {
  const { key, options, stream } = wait;
  let begunAt: number | undefined;
  const started = (index: number) => {
    if (begunAt !== undefined) return;
    begunAt = index;
    begin();
    const { status, headers } = encodeWaiting(index);
    response.writeHead(status, headers).flushHeaders();
  };
  const asked = { ...options, timeout: Number.POSITIVE_INFINITY, signal: hangUp, started };
  let event = await keys.watch(key, asked);
  while (event) {
    const isPast = event.index <= (begunAt ?? 0);
    const room = response.write(encodeEventLine(event).repeat(stream && !isPast ? timesTold(event, key) : 1));
    if (!stream) break;
    // A client too slow for the history is cut off then, rather than remembered without end.
    if (!room) await once(response, 'drain', { signal: hangUp });
    // As in etcd, a stream that began in the past stays silent after its first event.
    if (isPast && !hangUp.aborted) await once(hangUp, 'abort');
    event = await keys.watch(key, { ...asked, after: event.index }).catch(endWhereCleared);
  }
  response.end();
}

/** A stream that lags behind the history has missed something, and can only end. */
function endWhereCleared(error: unknown): undefined {
  if (!(error instanceof EtcdEventIndexCleared)) throw error;
}

/** As in etcd, a stream is told twice of the removal of the very key it is about. */
function timesTold({ action, node }: KeyEvent, key: string): number {
  return node.key === key && ['delete', 'compareAndDelete', 'expire'].includes(action) ? 2 : 1;
}
