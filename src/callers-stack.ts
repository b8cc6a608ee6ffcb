import type { Source } from './cancellation.ts';
import { EtcdClientClosed, EtcdException, EtcdLockReleased } from './errors.ts';

/**
 * Makes the stack of an error of this package show the caller. Before, an error made in a timer or by a socket shows frames of
 * Node only. Use this in the `catch` of a public method: V8 follows the awaits from there to the caller, so that a call that
 * succeeds costs nothing.
 *
 * One event rejects many calls with the same `EtcdClientClosed` or `EtcdLockReleased`: each call gets an error of its own.
 * @param signal the caller's signal. Its reason is the caller's own error, and is returned as it is, like any foreign error.
 */
export function withCallersStack(error: unknown, signal?: Source): unknown {
  if (!(error instanceof EtcdException) || (signal?.aborted && error === signal.reason)) return error;
  const { message, outcomeUnknown } = error;
  if (error instanceof EtcdClientClosed) return new EtcdClientClosed(message, { outcomeUnknown });
  if (error instanceof EtcdLockReleased) return new EtcdLockReleased(message);
  Error.captureStackTrace(error, withCallersStack);
  return error;
}
