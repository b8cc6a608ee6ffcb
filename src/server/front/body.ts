import type { IncomingMessage } from 'node:http';
import { addAbortListener, removeAbortListener, type Source } from '../../base/cancellation.ts';
import { etcdError } from '../../v2/error-codes.ts';
import { PIECE_COST, type Share } from '../budget.ts';
import { OutOfMemory } from '../served-keys.ts';
import { type MediaType, parseMediaType } from './media-type.ts';

const FORM = 'application/x-www-form-urlencoded';

/** Maximum size of a form in bytes. etcd accepts ten times as much; no lock needs that. */
const LONGEST_FORM = 2 ** 20;

/** How to read a body. */
export interface Reading {
  /** Takes the memory for the body. */
  readonly share: Share;
  /** Aborts when the rest of the body cannot be read. */
  readonly broken: Source;
}

/** A limit for bodies. */
export interface Limit {
  /** Bytes. */
  readonly longest: number;
  /** Returns the error for longer ones. */
  readonly tooLong: () => Error;
}

const FORMS: Limit = { longest: LONGEST_FORM, tooLong: () => etcdError(210, 'http: POST too large', 0) };

/**
 * Reads the form in the body of a request. Returns it with one byte in each code unit, or '' for a body that is not a form:
 * etcd ignores such a body.
 *
 * Call it as soon as the request arrives. While data on a connection is unread, Node does not report that the client has
 * hung up.
 * @throws {EtcdValueError} code 210 if the form is too long, or its `Content-Type` is invalid. The body is then discarded.
 * @throws {OutOfMemory} if the budget has no room for the form. The body is then discarded.
 * @throws the abort reason, or the connection's error if the connection breaks
 */
export async function readForm(request: IncomingMessage, reading: Reading): Promise<string> {
  const header = ['PUT', 'POST'].includes(request.method ?? '') ? request.headers['content-type'] : undefined;
  const { type, error }: MediaType = header ? parseMediaType(header) : {};
  if (type === FORM) return readBody(request, reading, FORMS);
  request.resume();
  if (error !== undefined) throw etcdError(210, error, 0);
  return '';
}

/** Reads the body of a request, whatever its type. Like {@link readForm} in all else. */
export function readBody(request: IncomingMessage, { share, broken }: Reading, limit: Limit): Promise<string> {
  return orBroken(request, readAll(request, share, limit), broken);
}

/** Settles like `body`, but rejects when `broken` aborts before the whole body has arrived. */
function orBroken(request: IncomingMessage, body: Promise<string>, broken: Source): Promise<string> {
  return new Promise((resolve, reject) => {
    const onBroken = (reason: unknown): void => {
      if (!request.complete) reject(reason);
    };
    addAbortListener(broken, onBroken);
    body.then(resolve, reject).finally(() => removeAbortListener(broken, onBroken));
  });
}

async function readAll(request: IncomingMessage, share: Share, { longest, tooLong }: Limit): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  let isRefused = false;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    isRefused ||= !share.take(chunk.length + PIECE_COST);
    if (length <= longest && !isRefused) chunks.push(chunk);
    else chunks.length = 0;
  }
  if (length > longest) throw tooLong();
  if (isRefused) throw new OutOfMemory();
  return Buffer.concat(chunks).toString('latin1');
}
