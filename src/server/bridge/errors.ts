import { errorText } from '../../base/error-text.ts';
import { EtcdException, EtcdInsufficientPermissions, EtcdLeaderElectionInProgress } from '../../errors.ts';
import { etcdError } from '../../v2/error-codes.ts';
import { INVALID_ARGUMENT } from '../../v3/gateway/errors.ts';

/** For each translated error: the error from which it was made. */
const originals = new WeakMap<object, unknown>();

/** Returns the error from which an error was translated, or the error itself if it is not a translation. */
export const originalOf = (error: unknown): unknown =>
  (typeof error === 'object' && error !== null && originals.get(error)) || error;

/** Whether etcd has refused the user or the password of a request, and not only its rights. */
export function isLogInRefused(error: unknown): boolean {
  const original = originalOf(error);
  return original instanceof EtcdInsufficientPermissions && original.errorCode === INVALID_ARGUMENT;
}

/** Runs a call, and translates an error of etcd v3 to one of etcd v2: the same code means different things in the two. */
export async function translated<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw inTermsOfV2(error);
  }
}

/** Translates an `EtcdException` without a code of etcd v2, such as a failed connection. Returns any other error unchanged. */
export function inTermsOfV2(error: unknown): unknown {
  if (!(error instanceof EtcdException) || isOfV2(error)) return error;
  const translation = etcdError(codeFor(error), errorText(error), 0);
  originals.set(translation, error);
  return translation;
}

function codeFor(error: EtcdException): number {
  if (error instanceof EtcdInsufficientPermissions) return 110;
  return error instanceof EtcdLeaderElectionInProgress ? 301 : 300;
}

/** Whether the error's code is one of etcd v2. The codes of etcd v3 are those of gRPC, below 20. */
const isOfV2 = ({ errorCode }: EtcdException): boolean => errorCode !== undefined && errorCode >= 100;
