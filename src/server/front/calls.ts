import type { Change } from '../../v2/keys-api.ts';
import * as wire from '../../v2/wire.ts';
import type { ServedKeys } from '../served-keys.ts';
import type { Work } from './connection/work.ts';
import type { Wait } from './wait.ts';

type Read = Extract<wire.KeysRequest, { call: 'get' }>;
type Write = Exclude<wire.KeysRequest, Read | Wait>;

/** Events of a socket whose client has hung up. */
const HANG_UPS = ['end', 'error'] as const;

/**
 * Runs the call with a signal that aborts as soon as the client hangs up. The response's 'close' may come too late: after a suspension of
 * this process, answers of etcd that have arrived are handled before it.
 */
export async function untilHangUp<T>(
  { request: { socket }, hangUp }: Work,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = (): void => hangUp.abort();
  for (const event of HANG_UPS) socket.once(event, abort);
  if (socket.readableEnded) abort();
  try {
    return await call(hangUp.signal);
  } finally {
    for (const event of HANG_UPS) socket.off(event, abort);
  }
}

export async function replyOf(
  keys: ServedKeys,
  asked: Read | Write,
  { noValueOnSuccess, signal }: { readonly noValueOnSuccess: boolean; readonly signal: AbortSignal },
): Promise<wire.WireReply> {
  if (asked.call === 'get') return wire.encodeSnapshot(await keys.get(asked.key, { ...asked.options, signal }), signal);
  return wire.encodeChange(await write(keys, asked, signal), noValueOnSuccess);
}

/**
 * Sends a write to the store.
 * @param signal aborts when the client hangs up. Ends everything but a removal: a client that removes its entry may exit at once, and
 *   the entry would then stay until its TTL has passed.
 */
function write(keys: ServedKeys, asked: Write, signal: AbortSignal): Promise<Change> {
  if (asked.call === 'delete') return keys.delete(asked.key, asked.options);
  return keys[asked.call](asked.key, asked.value, { ...asked.options, signal });
}
