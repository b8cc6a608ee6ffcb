import type { IncomingMessage } from 'node:http';
import { etcdError } from '../../v2/error-codes.ts';
import { type MediaType, parseMediaType } from './media-type.ts';

const FORM = 'application/x-www-form-urlencoded';

/** Maximum size of a form in bytes. etcd accepts ten times as much; no lock needs that. */
const LONGEST_FORM = 2 ** 20;

/**
 * Reads the form in the body of a request. Returns it with one byte in each code unit, or '' for a body that is not a form:
 * etcd ignores such a body.
 *
 * Call it as soon as the request arrives. While data on a connection is unread, Node does not report that the client has
 * hung up.
 * @throws {EtcdValueError} code 210 if the form is too long, or its `Content-Type` is invalid. The body is then discarded.
 * @throws the connection's error if the connection breaks
 */
export async function readForm(request: IncomingMessage): Promise<string> {
  const header = ['PUT', 'POST'].includes(request.method ?? '') ? request.headers['content-type'] : undefined;
  const { type, error }: MediaType = header ? parseMediaType(header) : {};
  if (type === FORM) return readBody(request);
  request.resume();
  if (error !== undefined) throw etcdError(210, error, 0);
  return '';
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= LONGEST_FORM) chunks.push(chunk);
    else chunks.length = 0;
  }
  if (length > LONGEST_FORM) throw etcdError(210, 'http: POST too large', 0);
  return Buffer.concat(chunks).toString('latin1');
}
