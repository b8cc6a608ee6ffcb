/** The forms of the gateway's answers, which differ by version. */
import { STATUS_CODES } from 'node:http';
import { etcdJson, type WireReply } from '../../../v2/wire.ts';
import { plain } from '../../front/replies.ts';
import type { EtcdVersion } from '../../version.ts';
import { EtcdV3Refusal, NOT_FOUND, UNIMPLEMENTED } from '../errors.ts';

/** HTTP status of an error by gRPC's code. Others: 500. */
const STATUS: Readonly<Record<number, number>> = {
  1: 408,
  3: 400,
  5: 404,
  7: 403,
  8: 429,
  9: 400,
  11: 400,
  12: 501,
  14: 503,
  16: 401,
};

const statusOf = ({ code }: EtcdV3Refusal, version: EtcdVersion): number =>
  code === 9 && version === '3.4' ? 412 : (STATUS[code] ?? 500);

export const HEADERS = { 'Content-Type': 'application/json', 'Grpc-Metadata-Content-Type': 'application/grpc' };

export const success = (body: string): WireReply => ({ status: 200, headers: HEADERS, body });

/** The answer to a path that is none of the calls. */
export const unknownCall = (version: EtcdVersion): WireReply =>
  version === '3.6' ? failure(new EtcdV3Refusal(NOT_FOUND, 'Not Found'), version) : plain(404, 'Not Found\n');

/** The answer to another method than POST. */
export const notPost = (version: EtcdVersion): WireReply =>
  version === '3.6'
    ? failure(new EtcdV3Refusal(UNIMPLEMENTED, 'Method Not Allowed'), version)
    : plain(405, 'Method Not Allowed\n');

/** A stream without answers. */
export const nothing = (version: EtcdVersion): WireReply => ({
  status: 200,
  headers: version === '3.6' ? {} : { 'Content-Type': 'application/json' },
  body: '',
});

export function failure(refusal: EtcdV3Refusal, version: EtcdVersion): WireReply {
  const { code, message } = refusal;
  const headers = { 'Content-Type': 'application/json' };
  return { status: statusOf(refusal, version), headers, body: etcdJson(ERRORS[version](code, message)).trimEnd() };
}

/** A stream that ends with an error. @param lines the answers before it */
export function streamFailure(lines: readonly string[], refusal: EtcdV3Refusal, version: EtcdVersion): WireReply {
  const last = lastLine(refusal, version);
  if (lines.length > 0) return success(`${lines.join('')}${last}`);
  return { status: statusOf(refusal, version), headers: { 'Content-Type': 'application/json' }, body: last };
}

/** The error with which a stream ends. */
export function lastLine(refusal: EtcdV3Refusal, version: EtcdVersion): string {
  const { code, message } = refusal;
  if (version === '3.6') return etcdJson({ error: { code, message } });
  const status = statusOf(refusal, version);
  const error = { grpc_code: code, http_code: status, message, http_status: STATUS_CODES[status] };
  return etcdJson({ error }).trimEnd();
}

/** The fields of an error, in the order of each version. */
const ERRORS: Readonly<Record<EtcdVersion, (code: number, message: string) => object>> = {
  '3.4': (code, message) => ({ error: message, message, code }),
  '3.5': (code, message) => ({ error: message, code, message }),
  '3.6': (code, message) => ({ code, message }),
};

/** One answer of a stream. */
export const result = (message: string): string => `{"result":${message}}\n`;
