import {
  EtcdClientClosed,
  EtcdConnectionFailed,
  EtcdException,
  EtcdLockExpired,
  EtcdLockLimitDiffers,
  EtcdLockLost,
  EtcdLockReleased,
  EtcdLockTimeout,
} from '../../../src/index.ts';

const ERRORS = [
  EtcdLockLimitDiffers,
  EtcdLockTimeout,
  EtcdLockLost,
  EtcdLockExpired,
  EtcdLockReleased,
  EtcdConnectionFailed,
  EtcdClientClosed,
];

/** Whether a fault of the world explains an error. */
export const expected = (error: unknown): boolean =>
  ERRORS.some((ErrorClass) => error instanceof ErrorClass) ||
  (error instanceof EtcdException && /Raft Internal Error|etcdserver: (?!lease already exists)/.test(error.message)) ||
  (error instanceof Error && error.message === 'enough of it');

export function ignoreExpected(error: unknown): void {
  if (!expected(error)) throw error;
}

/** Whether an error must not end a campaign: a candidate waits until it leads. */
export const endsNoCampaign = (error: unknown): boolean =>
  [EtcdConnectionFailed, EtcdLockTimeout, EtcdLockExpired].some((ErrorClass) => error instanceof ErrorClass);

/** Whether it says that the entry of a waiter was removed before it could expire, and not by etcd itself. */
export const isEvicted = (error: unknown): boolean => error instanceof EtcdLockExpired && !error.isEndedByStore;

/** Whether the error of a timeout contradicts itself: who waits in vain must learn who holds the lock, or why etcd does not answer. */
export function wrongReason(error: unknown, isPlain: boolean): boolean {
  if (!(error instanceof EtcdLockTimeout)) return false;
  const { reason, holder, failures } = error;
  if (isPlain) return reason !== 'held' || !holder;
  return reason === 'held' && !holder && failures.length > 0;
}
