/**
 * Decodes the errors of etcd's JSON gateway by gRPC's code, because the HTTP status differs between versions; by the message where
 * the code does, too.
 */
import {
  EtcdConnectionFailed,
  type EtcdErrorFields,
  EtcdException,
  EtcdInsufficientPermissions,
  EtcdUnusableAnswer,
} from '../../errors.ts';
import type { WireAnswer } from '../../http/message.ts';
import { type Json, unusable } from './messages.ts';

// The gRPC codes that are distinguished here.

/** Also the code for a refused login. */
export const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const FAILED_PRECONDITION = 9;
/** The code for a revision that was compacted. */
export const OUT_OF_RANGE = 11;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;
/**
 * Codes that leave the outcome of a write unknown. In this order: canceled (the member shuts down), unknown, deadline exceeded,
 * internal, unavailable.
 */
const UNCLEAR = [1, 2, 4, 13, UNAVAILABLE];
/** gRPC's names of the codes that refuse a watch. */
const NAMED = new Map([
  ['InvalidArgument', INVALID_ARGUMENT],
  ['PermissionDenied', PERMISSION_DENIED],
  ['Unauthenticated', UNAUTHENTICATED],
]);

/** The lease or the key of a request does not exist. */
export class NotFound extends EtcdException {}
/** A lease with this id exists already, or authentication is not enabled. */
export class FailedPrecondition extends EtcdException {}
/** The token is missing, or is no longer valid: a new one may help. */
export class TokenRefused extends EtcdInsufficientPermissions {
  /** The error for the caller when the call does not log in again. */
  get final(): EtcdInsufficientPermissions {
    const { message, errorCode, httpStatus } = this;
    return new EtcdInsufficientPermissions(message, { errorCode, httpStatus });
  }
}

/** Message of etcd 3.6's gateway, with code 5, for a path that it does not serve. A missing lease has another message. */
const UNKNOWN_PATH = 'Not Found';

/**
 * Matches the messages of a member that cannot serve now, although another one may. The code depends on the version: etcd 3.6 has
 * changed some from 14 to 9. The member sends them before it writes a key, so the outcome of a write is known.
 */
const CANNOT_SERVE = /^etcdserver: (rpc not supported for learner|not capable|no leader|corrupt cluster)/;

/** Matches the message of an InvalidArgument error about a wrong user or password. */
const ABOUT_CREDENTIALS = /authentication failed/;
/** Matches the messages of InvalidArgument errors about a missing token, or one older than the last change of users or roles. */
const ABOUT_TOKEN = /user name is empty|revision of auth store is old/;

/** Returns the parsed body of an answer. @throws the error that the answer reports */
export function decodeBody(answer: WireAnswer): Json {
  const body = parsed(answer.body);
  if (answer.status === 200 && body && body['error'] === undefined) return body;
  throw decodeError(answer, body);
}

/** Returns the error that an unsuccessful answer, or a message of a stream, reports. */
export function decodeError(answer: WireAnswer, body = parsed(answer.body)): EtcdException {
  const inner = body?.['error'];
  const fields = (typeof inner === 'object' && inner !== null ? inner : body) as Json | undefined;
  const code = fields?.['grpc_code'] ?? fields?.['code'] ?? fields?.['Code'];
  const message = fields?.['message'] ?? fields?.['error'] ?? fields?.['Error'];
  if (typeof code !== 'number' || typeof message !== 'string' || message === UNKNOWN_PATH) return notTheGateway(answer);
  return errorOf(code, message, answer.status);
}

/** Returns the error of a watch that the member has refused or ended. */
export function decodeCancellation(reason: string): EtcdException {
  const code = NAMED.get(PREFIX.exec(reason)?.[1] ?? '');
  if (code !== undefined) return errorOf(code, reason, 200);
  return new EtcdConnectionFailed(`etcd refused the watch${reason === '' ? ' without a reason' : `: ${reason}`}`);
}

/** Prefix that gRPC may add to the message of an error. */
const PREFIX = /^rpc error: code = (\w+) desc = /;

function errorOf(code: number, message: string, httpStatus: number): EtcdException {
  const text = message.replace(PREFIX, '');
  const fields: EtcdErrorFields = { errorCode: code, httpStatus };
  if (CANNOT_SERVE.test(text)) return new EtcdConnectionFailed(`answered: ${text}`, fields);
  if (code === UNAVAILABLE && !/^(etcdserver:|transport is closing|error reading from server)/.test(text))
    return new EtcdConnectionFailed(`answered: ${text}${UNREACHABLE}`, { ...fields, outcomeUnknown: true });
  if (code === RESOURCE_EXHAUSTED) return exhausted(text, fields);
  if (UNCLEAR.includes(code)) return new EtcdConnectionFailed(`answered: ${text}`, { ...fields, outcomeUnknown: true });
  if (code === UNAUTHENTICATED || (code === INVALID_ARGUMENT && ABOUT_TOKEN.test(text)))
    return new TokenRefused(text, fields);
  if (code === PERMISSION_DENIED || (code === INVALID_ARGUMENT && ABOUT_CREDENTIALS.test(text)))
    return new EtcdInsufficientPermissions(text, fields);
  if (code === NOT_FOUND) return new NotFound(text, fields);
  if (code === FAILED_PRECONDITION) return new FailedPrecondition(text, fields);
  return new EtcdException(text, fields);
}

/** Hint that only asks, because a gateway gives the same answer while its server starts or stops. */
const UNREACHABLE =
  ' (the gateway cannot connect to its own etcd; with --client-cert-auth, ' +
  "does the server's certificate lack the extended key usage clientAuth?)";

function exhausted(text: string, fields: EtcdErrorFields): EtcdException {
  // The outcome is known: etcd refuses such a request before it writes anything.
  if (!/space exceeded|larger than max/.test(text)) return new EtcdConnectionFailed(`answered: ${text}`, fields);
  const cure = '; free space by compacting and defragmenting etcd, then run "etcdctl alarm disarm"';
  return new EtcdException(text + (text.includes('space exceeded') ? cure : ''), fields);
}

function notTheGateway(answer: WireAnswer): EtcdException {
  const { status, body } = answer;
  if (status === 404) return new EtcdUnusableAnswer(NO_GATEWAY, { httpStatus: status });
  if (isTroubleOfProxy(status))
    return new EtcdConnectionFailed(`answered ${status}`, { httpStatus: status, outcomeUnknown: true });
  if (status === 400 && body.startsWith('CommonName'))
    return new EtcdInsufficientPermissions(HAS_NAME, { httpStatus: status });
  return unusable(answer, "is not from etcd's v3 gateway");
}

/** Whether an answer that is not etcd's says that a later request may succeed. */
export const isTroubleOfProxy = (status: number): boolean => status >= 500 || status === 408 || status === 429;

const NO_GATEWAY =
  'has no v3 gateway at this address (404): etcd 3.3 or later serves the gateway, ' +
  'except with --enable-grpc-gateway=false; with --listen-client-http-urls, it is only at those URLs';

const HAS_NAME =
  "with authentication, etcd's gateway accepts no client certificate that has a common name (CN): use one without a CN";

/** Adds a hint to the error for an answer that is not HTTP: the port may serve gRPC only. Returns any other error as it is. */
export function withHint(error: unknown): unknown {
  if (!(error instanceof EtcdConnectionFailed)) return error;
  const { message, cause, outcomeUnknown } = error;
  if (!(cause instanceof Error && cause.name === 'HTTPParserError')) return error;
  const hint = "; is this a port for gRPC only? The gateway is then at etcd's --listen-client-http-urls";
  return new EtcdConnectionFailed(message + hint, { cause, outcomeUnknown });
}

function parsed(body: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}
