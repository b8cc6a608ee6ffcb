import {
  type EndpointFailure,
  EtcdClusterIdChanged,
  EtcdCompareFailed,
  EtcdConnectionFailed,
  type EtcdErrorFields,
  EtcdEventIndexCleared,
  EtcdException,
  EtcdKeyNotFound,
  EtcdTlsFailed,
  EtcdUnusableAnswer,
  EtcdWatcherCleared,
  isTransient,
} from '../../errors.ts';
import { now } from '../../time.ts';
import type { Asked } from './members.ts';

/** Another member may do better: this one did not answer, has no leader, is of another cluster, no etcd at all, or not to be trusted. */
export function isMembersFault(error: unknown): error is EtcdException {
  return (
    error instanceof EtcdTlsFailed ||
    error instanceof EtcdUnusableAnswer ||
    error instanceof EtcdClusterIdChanged ||
    (isTransient(error) && !isCleared(error))
  );
}

/** A cleared history is the cluster's, not the member's. */
const isCleared = (error: unknown): boolean =>
  error instanceof EtcdWatcherCleared || error instanceof EtcdEventIndexCleared;

const isUnclear = (error: Error): boolean => error instanceof EtcdException && error.outcomeUnknown;

/**
 * A condition that failed may have failed because another attempt was carried out: an unclear one, or one still under way.
 */
export function afterOthers(error: unknown, failures: readonly EndpointFailure[], underWay: boolean): unknown {
  const conditionFailed = error instanceof EtcdCompareFailed || error instanceof EtcdKeyNotFound;
  if (!conditionFailed || !(underWay || failures.some((failure) => isUnclear(failure.error)))) return error;
  return rebuild(error, error.message, { failures, outcomeUnknown: true });
}

/** What a member has failed with whose answer is not waited for any more. */
export const stillSilent = ({ endpoint, since }: Asked): EndpointFailure => {
  const message = `no answer for ${((now() - since) / 1000).toFixed(1)} s`;
  return { endpoint: endpoint.url, error: new EtcdConnectionFailed(message, { outcomeUnknown: true }) };
};

/** One error for the whole round. */
export function combine(failures: readonly EndpointFailure[]): Error {
  const errors = failures.map(({ error }) => error);
  const messages = new Set(failures.map(({ endpoint, error }) => `${endpoint}: ${error.message}`));
  const message = [...messages].join('; ');
  const [first] = errors;
  const alike = first instanceof EtcdException && errors.every((error) => error.constructor === first.constructor);
  const outcomeUnknown = errors.some(isUnclear);
  if (alike && errors.length === 1) return rebuild(first, message, { failures, outcomeUnknown });
  const cause = new AggregateError(errors, message);
  if (alike && !isTransient(first)) return rebuild(first, message, { failures, outcomeUnknown, cause });
  return new EtcdConnectionFailed(`no member gave an answer: ${message}`, { failures, outcomeUnknown, cause });
}

function rebuild(error: EtcdException, message: string, fields: EtcdErrorFields): EtcdException {
  const ErrorClass = error.constructor as typeof EtcdException;
  const { errorCode, index, status, cause } = error;
  return new ErrorClass(message, { errorCode, index, status, cause, ...fields });
}
