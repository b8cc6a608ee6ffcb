import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { encodeEventLine, encodeWaiting, type KeysRequest } from '../../v2/wire.ts';
import type { ServedKeys } from '../served-keys.ts';

export interface WaitContext {
  /** Aborts when the client hangs up. */
  readonly hangUp: AbortSignal;
  /** Called when the wait has started in the store, before the headers are sent. */
  readonly begin: () => void;
}

export type Wait = Extract<KeysRequest, { call: 'watch' }>;

/**
 * Maximum number of bytes buffered for a slow client; further events stay in the store's queue. etcd writes to the system's
 * send buffer, which Linux lets grow to this size. Node's own limit of 16 or 64 KiB is reached within one turn of the event loop.
 */
const SEND_BUFFER = 4 * 2 ** 20;

/**
 * Answers a request with `wait=true`: a long poll or a stream. Sends the headers at once, then one line for the event, or for
 * each event of a stream. There is no time limit: a poll lasts until the event, or until the client hangs up.
 */
export async function serveWait(
  keys: ServedKeys,
  { key, options, stream }: Wait,
  response: ServerResponse,
  { hangUp, begin }: WaitContext,
): Promise<void> {
  const started = (index: number) => {
    begin();
    const { status, headers } = encodeWaiting(index);
    response.writeHead(status, headers).flushHeaders();
  };
  const asked = { ...options, timeout: Number.POSITIVE_INFINITY, signal: hangUp, started };
  if (stream) {
    for await (const event of keys.stream(key, asked)) {
      const room = response.write(encodeEventLine(event));
      if (!room && response.writableLength > SEND_BUFFER) await once(response, 'drain', { signal: hangUp });
    }
  } else {
    const event = await keys.watch(key, asked);
    if (event) response.write(encodeEventLine(event));
  }
  response.end();
}
