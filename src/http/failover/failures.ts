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
import type { MemberRequest } from './members.ts';

/**
 * Whether another member may succeed: this one did not answer, has no leader, is of another cluster, is no etcd, or is not
 * trusted.
 */
export function isMembersFault(error: unknown): error is EtcdException {
  return (
    error instanceof EtcdTlsFailed ||
    error instanceof EtcdUnusableAnswer ||
    error instanceof EtcdClusterIdChanged ||
    (isTransient(error) && !isCleared(error))
  );
}

/** Another member would not help: all members have the same event history. */
const isCleared = (error: unknown): boolean =>
  error instanceof EtcdWatcherCleared || error instanceof EtcdEventIndexCleared;

const isUnclear = (error: Error): boolean => error instanceof EtcdException && error.outcomeUnknown;

/**
 * Marks a failed condition as `outcomeUnknown` if another attempt of the call may have caused it: one with an unknown outcome,
 * or one that is still under way. Returns any other error as it is.
 */
export function markUnclear(error: unknown, failures: readonly EndpointFailure[], underWay: boolean): unknown {
  const conditionFailed = error instanceof EtcdCompareFailed || error instanceof EtcdKeyNotFound;
  if (!conditionFailed || !(underWay || failures.some((failure) => isUnclear(failure.error)))) return error;
  return rebuild(error, error.message, { failures, outcomeUnknown: true });
}

/** Returns the failure of a member that is still silent when its call ends. */
export const stillSilent = ({ endpoint, startedAt }: MemberRequest): EndpointFailure => {
  const message = `no answer for ${((now() - startedAt) / 1000).toFixed(1)} s`;
  return { endpoint: endpoint.url, error: new EtcdConnectionFailed(message, { outcomeUnknown: true }) };
};

/** Combines the failures of a call into one error. */
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
  return new EtcdConnectionFailed(`no member could answer: ${message}`, { failures, outcomeUnknown, cause });
}

function rebuild(error: EtcdException, message: string, fields: EtcdErrorFields): EtcdException {
  const ErrorClass = error.constructor as typeof EtcdException;
  const { errorCode, index, httpStatus, cause } = error;
  return new ErrorClass(message, { errorCode, index, httpStatus, cause, ...fields });
}
