import { errorText } from '../../error-text.ts';
import { EtcdException, EtcdInsufficientPermissions, EtcdLeaderElectionInProgress } from '../../errors.ts';
import { etcdError } from '../../v2/error-codes.ts';

/** The errors of etcd v3 that errors of etcd v2 stand for. */
const originals = new WeakMap<object, unknown>();

/** Returns the error of etcd v3 that an error stands for, or the error itself. */
export const originalOf = (error: unknown): unknown =>
  (typeof error === 'object' && error !== null && originals.get(error)) || error;

/** Runs a call. An error of etcd v3 becomes one of etcd v2, because their numbers mean other things. */
export async function translated<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw inTermsOfV2(error);
  }
}

/** Returns an error of etcd v2 for one of etcd v3, and any other as it is. */
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

/** Whether the error's number is one of etcd v2. gRPC's are below 20. */
const isOfV2 = ({ errorCode }: EtcdException): boolean => errorCode !== undefined && errorCode >= 100;
