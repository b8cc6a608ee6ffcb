import type { IncomingMessage } from 'node:http';
import { etcdError } from '../../errors.ts';
import { type MediaType, parseMediaType } from './media-type.ts';

const FORM = 'application/x-www-form-urlencoded';

/** Bytes a form may have. etcd itself takes ten times that; nobody's lock needs it. */
const LONGEST_FORM = 2 ** 20;

/**
 * The form a request carries, a byte in each code unit; empty where it carries something else, which etcd ignores. It has
 * to be called as soon as the request is there: as long as anything on a connection is unread, nobody learns that its
 * client has hung up.
 * @throws {EtcdValueError} code 210 when it is too long, or its type cannot be read. The body is dropped then.
 * @throws the connection's error when that breaks off
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
