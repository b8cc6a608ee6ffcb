import { now } from '../../base/time.ts';
import {
  type EndpointFailure,
  EtcdClusterIdChanged,
  EtcdConnectionFailed,
  type EtcdErrorFields,
  EtcdEventIndexCleared,
  EtcdException,
  EtcdTlsFailed,
  EtcdUnusableAnswer,
  EtcdWatcherCleared,
  isTransient,
  mayBeCarriedOut,
} from '../../errors.ts';
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

/** Whether the error is about cleared events. Another member would not help: all members have the same event history. */
const isCleared = (error: unknown): boolean =>
  error instanceof EtcdWatcherCleared || error instanceof EtcdEventIndexCleared;

/**
 * Marks the error of an attempt as `outcomeUnknown` if another attempt of the call may have been carried out: one that has an
 * unknown outcome, or is still under way.
 */
export function markUnclear(error: unknown, failures: readonly EndpointFailure[], underWay: boolean): unknown {
  const mayBeDone = underWay || failures.some((failure) => mayBeCarriedOut(failure.error));
  if (!mayBeDone || !(error instanceof EtcdException)) return error;
  return rebuild(error, error.message, { failures, outcomeUnknown: true, cause: error.cause });
}

/** For each error of {@link noAnswer}: the seconds that passed without an answer. */
const silences = new WeakMap<Error, number>();

/** Returns the error for a member that has not answered within `seconds` seconds. */
export function noAnswer(seconds: number): EtcdConnectionFailed {
  const error = new EtcdConnectionFailed(silence(seconds), { outcomeUnknown: true });
  silences.set(error, seconds);
  return error;
}

const silence = (seconds: number): string => `no answer in ${Number(seconds.toPrecision(2))} s`;

/** Returns the failure of a member that is still silent when its call ends. */
export const stillSilent = ({ endpoint, startedAt }: MemberRequest): EndpointFailure => ({
  endpoint: endpoint.url,
  error: noAnswer((now() - startedAt) / 1000),
});

/** Combines the failures of a call into one error. It has no `cause` that would repeat them: each is in `failures`. */
export function combine(failures: readonly EndpointFailure[]): Error {
  const errors = failures.map(({ error }) => error);
  const message = summaryOf(failures);
  const [first] = errors;
  const alike = first instanceof EtcdException && errors.every((error) => error.constructor === first.constructor);
  const fields = { failures, outcomeUnknown: errors.some(mayBeCarriedOut) };
  if (alike && (errors.length === 1 || !isTransient(first))) return rebuild(first, message, fields);
  return new EtcdConnectionFailed(`no member could answer: ${message}`, fields);
}

/** Returns text that names each member once, with its different failures and how often each happened. */
function summaryOf(failures: readonly EndpointFailure[]): string {
  const members = new Map<string, Map<string, Error[]>>();
  for (const { endpoint, error } of failures) {
    const member = members.get(endpoint) ?? new Map<string, Error[]>();
    members.set(endpoint, member);
    const kind = silences.has(error) ? 'silence' : error.message;
    const alike = member.get(kind);
    if (alike) alike.push(error);
    else member.set(kind, [error]);
  }
  const lines = [...members].map(
    ([endpoint, member]) => `${endpoint}: ${[...member.values()].map(repeated).join(', ')}`,
  );
  return lines.join('; ');
}

/** Returns the message of failures of one kind. Of several silences, shows the longest. */
function repeated(errors: readonly Error[]): string {
  const longest = Math.max(...errors.map((error) => silences.get(error) ?? 0));
  const message = longest > 0 ? silence(longest) : (errors[0]?.message ?? '');
  return errors.length === 1 ? message : `${message} (${errors.length} times)`;
}

function rebuild(error: EtcdException, message: string, fields: EtcdErrorFields): EtcdException {
  const ErrorClass = error.constructor as typeof EtcdException;
  const { errorCode, index, httpStatus, cause } = error;
  const text = typeof cause === 'string' ? cause : undefined; // an error would repeat what the message says
  return new ErrorClass(message, { errorCode, index, httpStatus, cause: text, ...fields });
}
