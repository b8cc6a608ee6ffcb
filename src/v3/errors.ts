/** The errors of etcd's JSON gateway. Decided by gRPC's code, because the HTTP status differs between versions. */
import {
  EtcdConnectionFailed,
  type EtcdErrorFields,
  EtcdException,
  EtcdInsufficientPermissions,
  EtcdUnusableAnswer,
} from '../errors.ts';
import type { WireAnswer } from '../http/message.ts';
import { type Json, unusable } from './messages.ts';

/** gRPC's codes that have a meaning here. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const FAILED_PRECONDITION = 9;
const UNAUTHENTICATED = 16;
/**
 * Codes after which a write may have been carried out, or may still be: canceled, which a member answers while it shuts down, unknown,
 * deadline exceeded, internal, unavailable.
 */
const UNCLEAR = [1, 2, 4, 13, 14];

/** The lease of a request does not exist, or its key. */
export class NotFound extends EtcdException {}
/** A lease with this id exists already, or authentication is not enabled. */
export class FailedPrecondition extends EtcdException {}
/** The token is missing, or is no longer valid. */
export class TokenRefused extends EtcdInsufficientPermissions {}

/** How gRPC's texts of an argument error name a missing token, or one that is older than a change of users. */
const ABOUT_TOKEN = /user name is empty|revision of auth store is old/;

/** Returns the parsed body of an answer. @throws the error that the answer is */
export function decodeBody(answer: WireAnswer): Json {
  const body = parsed(answer.body);
  if (answer.status === 200 && body && body['error'] === undefined) return body;
  throw decodeError(answer, body);
}

/** Returns the error of an unsuccessful answer, or of an error within a stream. */
export function decodeError(answer: WireAnswer, body = parsed(answer.body)): EtcdException {
  const inner = body?.['error'];
  const fields = (typeof inner === 'object' && inner !== null ? inner : body) as Json | undefined;
  const code = fields?.['grpc_code'] ?? fields?.['code'] ?? fields?.['Code'];
  const message = fields?.['message'] ?? fields?.['error'] ?? fields?.['Error'];
  if (typeof code === 'number' && typeof message === 'string') return errorOf(code, message, answer.status);
  return notTheGateway(answer);
}

function errorOf(code: number, message: string, httpStatus: number): EtcdException {
  const text = message.replace(/^rpc error: code = \w+ desc = /, '');
  const fields: EtcdErrorFields = { errorCode: code, httpStatus };
  if (UNCLEAR.includes(code)) return new EtcdConnectionFailed(`answered: ${text}`, { ...fields, outcomeUnknown: true });
  if (code === UNAUTHENTICATED || (code === INVALID_ARGUMENT && ABOUT_TOKEN.test(text)))
    return new TokenRefused(text, fields);
  if (code === PERMISSION_DENIED) return new EtcdInsufficientPermissions(text, fields);
  if (code === NOT_FOUND) return new NotFound(text, fields);
  if (code === FAILED_PRECONDITION) return new FailedPrecondition(text, fields);
  return new EtcdException(text, fields);
}

function notTheGateway(answer: WireAnswer): EtcdException {
  const { status } = answer;
  if (status === 404)
    return new EtcdUnusableAnswer(
      'has no v3 gateway at this address (404): etcd 3.3 or later serves it, unless started with --enable-grpc-gateway=false',
      { httpStatus: status },
    );
  if (status >= 500)
    return new EtcdConnectionFailed(`answered ${status}`, { httpStatus: status, outcomeUnknown: true });
  return unusable(answer, 'is not from etcd’s v3 gateway');
}

function parsed(body: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}
