import { EtcdClientClosed, EtcdException, EtcdLockReleased } from '../errors.ts';
import type { Source } from './cancellation.ts';

/**
 * Returns an error of this package with a stack that shows the caller. Without this, an error created in a timer or a socket shows
 * only frames of Node. Use it in the `catch` of a public method: V8 follows the awaits from there to the caller. A call that
 * succeeds has no extra cost.
 *
 * One event may reject many calls with the same `EtcdClientClosed` or `EtcdLockReleased`. For these, returns a new error per call.
 * @param signal the caller's signal. If `error` is its reason, returns it unchanged, like any error that is not of this package.
 */
export function withCallersStack(error: unknown, signal?: Source): unknown {
  if (!(error instanceof EtcdException) || (signal?.aborted && error === signal.reason)) return error;
  const { message, outcomeUnknown } = error;
  if (error instanceof EtcdClientClosed) return new EtcdClientClosed(message, { outcomeUnknown });
  if (error instanceof EtcdLockReleased) return new EtcdLockReleased(message);
  Error.captureStackTrace(error, withCallersStack);
  return error;
}
