import { errorText } from '../../error-text.ts';
import { EtcdException, EtcdInsufficientPermissions, EtcdLeaderElectionInProgress } from '../../errors.ts';
import { etcdError } from '../../v2/error-codes.ts';

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
  if (error instanceof EtcdInsufficientPermissions) return etcdError(110, errorText(error), 0);
  return etcdError(error instanceof EtcdLeaderElectionInProgress ? 301 : 300, errorText(error), 0);
}

/** Whether the error's number is one of etcd v2. gRPC's are below 20. */
const isOfV2 = ({ errorCode }: EtcdException): boolean => errorCode !== undefined && errorCode >= 100;
