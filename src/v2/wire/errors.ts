import { show } from '../../base/checks.ts';
import { errorText } from '../../base/error-text.ts';
import { EtcdConnectionFailed, EtcdException, EtcdInsufficientPermissions, EtcdUnusableAnswer } from '../../errors.ts';
import { showUser } from '../../http/checks/credentials.ts';
import { header, type WireAnswer, type WireReply, type WireRequest } from '../../http/message.ts';
import { etcdError, fromErrorCode, messageOf } from '../error-codes.ts';
import { etcdJson, parseObject } from './json.ts';

/** Decodes the error of an unsuccessful answer. */
export function decodeError(answer: WireAnswer, body = parseObject(answer.body)): EtcdException {
  const { status } = answer;
  if (body?.['errorCode'] !== undefined) return decodeEtcdError(answer, body);
  if (status === 401 || status === 403)
    return new EtcdInsufficientPermissions(`refused with ${status}: ${snippet(answer)}`, { httpStatus: status });
  if (status >= 500)
    return new EtcdConnectionFailed(`answered ${status}: ${snippet(answer)}`, {
      httpStatus: status,
      outcomeUnknown: true,
    });
  return unusable(answer, 'is not from the v2 keys API');
}

/** The request that an answer refuses, for the message. */
interface Refused {
  readonly member: string;
  readonly username: string | undefined;
  readonly request: WireRequest;
}

/** Returns the error for an answer that refuses the request for lack of credentials or permissions; undefined for any other. */
export function refusal(answer: WireAnswer, { member, username, request }: Refused): EtcdException | undefined {
  if (answer.status !== 401 && answer.status !== 403) return undefined;
  const error = decodeError(answer);
  if (!(error instanceof EtcdInsufficientPermissions)) return undefined;
  const who = username === undefined ? '(no user name sent)' : `as user ${showUser(username)}`;
  const path = decodeURIComponent(request.path.replace(/^\/keys(?=\/)/, ''));
  const { errorCode, index, httpStatus, cause } = error;
  const message = `${member}: no access to ${path} ${who}: ${error.message}`;
  return new EtcdInsufficientPermissions(message, { errorCode, index, httpStatus, cause });
}

/** Decodes an error with an etcd error code. Returns `EtcdUnusableAnswer` if a field has a type that etcd never sends. */
function decodeEtcdError(answer: WireAnswer, body: Record<string, unknown>): EtcdException {
  const { status } = answer;
  const { errorCode, message, cause, index = indexIn(answer) } = body;
  if (
    isCount(errorCode) &&
    typeof message === 'string' &&
    (cause === undefined || typeof cause === 'string') &&
    (index === undefined || isCount(index))
  )
    // A request that raft did not commit in time, or that the server gave up, may still be committed later.
    return fromErrorCode(errorCode, message, { httpStatus: status, index, cause, outcomeUnknown: status >= 500 });
  return unusable(answer, 'is not a valid etcd error');
}

function indexIn(answer: WireAnswer): number | undefined {
  const index = Number(header(answer, 'x-etcd-index') || Number.NaN);
  return isCount(index) ? index : undefined;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const STATUS: Readonly<Record<number, number>> = {
  100: 404,
  101: 412,
  102: 403,
  105: 412,
  108: 403,
  110: 401,
  300: 500,
  301: 500,
};

/** Encodes an error as etcd does. An error without etcd's code becomes 110 if permissions are missing, else 300. */
export function encodeError(error: unknown): WireReply {
  const known = asEtcdError(error);
  const { errorCode = 300, index = 0 } = known;
  const cause = typeof known.cause === 'string' && known.cause !== '' ? { cause: known.cause } : {};
  return {
    status: STATUS[errorCode] ?? 400,
    headers: { 'Content-Type': 'application/json', 'X-Etcd-Index': String(index) },
    body: etcdJson({ errorCode, message: messageOf(errorCode), ...cause, index }),
  };
}

function asEtcdError(error: unknown): EtcdException {
  if (error instanceof EtcdException && error.errorCode !== undefined) return error;
  if (error instanceof EtcdInsufficientPermissions) return etcdError(110, 'Insufficient credentials', 0);
  return etcdError(300, errorText(error), 0);
}

/** Returns the error for an answer that cannot be used. */
export function unusable(answer: WireAnswer, why: string): EtcdUnusableAnswer {
  const { status } = answer;
  const isDisabled = status === 404 && /404 page not found/.test(answer.body);
  const hint = isDisabled
    ? ' (etcd 3.4 and 3.5 serve /v2 only when started with --enable-v2; 3.6 dropped it: use api "v3")'
    : '';
  return new EtcdUnusableAnswer(`the answer ${why}${hint}: ${status} ${snippet(answer)}`, {
    httpStatus: status,
    outcomeUnknown: status < 300 || status >= 500,
  });
}

/** Returns the error for an answer about another key than the requested one. */
export const aboutOtherKey = (answer: WireAnswer, key: string, asked: string): EtcdUnusableAnswer =>
  unusable(answer, `is about ${show(key)}, not ${show(asked)}`);

function snippet({ body }: WireAnswer): string {
  const text = body.replace(/\s+/g, ' ').trim();
  return text === '' ? '(empty)' : show(text);
}
