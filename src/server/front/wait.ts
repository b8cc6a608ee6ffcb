import type { ServerResponse } from 'node:http';
import { orAborted } from '../../base/cancellation.ts';
import type { KeyEvent } from '../../v2/keys-api.ts';
import { encodeEventLine, encodeWaiting, type KeysRequest } from '../../v2/wire.ts';
import { OutOfMemory, type ServedKeys } from '../served-keys.ts';
import { Outgoing } from './connection/outgoing.ts';
import { SEND_BUFFER, type Unsent } from './connection/unsent.ts';
import { CLOSED_HALF } from './waits.ts';

export interface WaitContext {
  /** Aborts when the client hangs up, and when the server ends the wait. */
  readonly hangUp: AbortSignal;
  readonly unsent: Unsent;
  /** Called when the wait has started in the store, before the headers are sent. */
  readonly begin: () => void;
}

export type Wait = Extract<KeysRequest, { call: 'watch' }>;

/**
 * Answers a request with `wait=true`: a long poll or a stream. Sends the headers at once, then one line for the event, or for
 * each event of a stream. There is no time limit: a poll lasts until the event, or until the client hangs up.
 * @throws {OutOfMemory} if the budget has no room for an event
 */
export async function serveWait(
  keys: ServedKeys,
  { key, options, stream }: Wait,
  response: ServerResponse,
  { hangUp, unsent, begin }: WaitContext,
): Promise<void> {
  const outgoing = new Outgoing(response, unsent);
  const started = (index: number) => {
    begin();
    const { status, headers } = encodeWaiting(index);
    response.writeHead(status, headers).flushHeaders();
  };
  const send = (event: KeyEvent) => {
    if (!outgoing.write(encodeEventLine(event))) throw new OutOfMemory();
  };
  const asked = { ...options, timeout: Number.POSITIVE_INFINITY, signal: hangUp, started };
  try {
    if (stream) {
      for await (const event of keys.stream(key, asked)) {
        send(event);
        await orAborted(unsent.atMost(SEND_BUFFER), hangUp);
      }
    } else {
      const event = await keys.watch(key, asked);
      if (event) send(event);
    }
  } catch (error) {
    // Such a client still reads.
    if (hangUp.reason !== CLOSED_HALF || !response.headersSent) throw error;
  }
  outgoing.end();
}
