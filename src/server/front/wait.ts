import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { encodeEventLine, encodeWaiting, type KeysRequest } from '../../v2/wire.ts';
import type { ServedKeys } from '../served-keys.ts';

export interface WaitContext {
  /** Aborts when the client has gone. */
  readonly hangUp: AbortSignal;
  /** Called when the store has taken the wait up, before the headers are sent. */
  readonly begin: () => void;
}

export type Wait = Extract<KeysRequest, { call: 'watch' }>;

/**
 * Bytes of events written ahead of a slow client; further events stay in the store's queue. etcd's writes go to the
 * system's send buffer, which Linux lets grow to this size. Node's own limit, 16 KiB, is reached within one turn.
 */
const SEND_BUFFER = 4 * 2 ** 20;

/**
 * Answers a wait: the headers at once, a line for the event (for every event of a stream) when it comes. Nothing but the
 * client bounds it.
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
