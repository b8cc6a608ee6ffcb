import { withCallersStack } from '../base/callers-stack.ts';

/** How a hold ended. */
export interface Ending {
  /** The `EtcdLockLost`; undefined if the lock was not lost. */
  readonly lost: unknown;
  /**
   * Why the key could not be removed immediately (with `holdAtLeast`: why it could not be left to expire). undefined on success. The
   * work is retried in the background.
   */
  readonly cleanupError: unknown;
}

/**
 * Runs the work, then ends the hold. If the work throws, rejects with the same error. The loss of the lock, or a failed
 * removal of the key, is attached to that error as `lockError`.
 * @throws {EtcdLockLost} if the work returned, but the lock was lost
 */
export async function endAfter<T>(work: () => T | PromiseLike<T>, end: () => Promise<Ending>): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    const { lost, cleanupError } = await end();
    attach(error, lost ?? cleanupError);
    throw error;
  }
  const { lost } = await end();
  if (lost) throw withCallersStack(lost);
  return result;
}

/** Attaches an error of the lock, as `lockError`, to the error that the caller gets. Keeps a `lockError` that it already has. */
export function attach(error: unknown, lockError: unknown): void {
  if (lockError === undefined || error === lockError || typeof error !== 'object' || error === null) return;
  if ('lockError' in error) return;
  Reflect.defineProperty(error, 'lockError', {
    value: lockError,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}
