/** Answers that are not about keys. All but `forbidden` and `overloaded` are byte for byte what etcd sends. */
import { STATUS_CODES } from 'node:http';
import type { WireReply } from '../../v2/wire.ts';
import type { Page } from './info.ts';
import { location, type Target } from './target.ts';

export const plain = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): WireReply => ({
  status,
  headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff', ...headers },
  body,
});

/** An answer after which the connection is closed, as Go's server sends it. */
const last = (status: number, body: string): WireReply => ({
  status,
  headers: { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' },
  body,
});

export const malformed = last(400, '400 Bad Request');

export const noHost = last(400, '400 Bad Request: missing required Host header');

export const unknownEncoding = last(501, 'Unsupported transfer encoding');

/** Like Go's server, sends no body and no type with this status. */
export const unexpected: WireReply = { status: 417, headers: { Connection: 'close' }, body: '' };

const tooLong = last(431, '431 Request Header Fields Too Large');
const tooSlow = last(408, '408 Request Timeout');

/** Returns the answer to what is not a request, by Node's error. Returns undefined for an error of the connection. */
export function unreadable(error: unknown): WireReply | undefined {
  const { code, reason = '' } = error as NodeJS.ErrnoException & { readonly reason?: string };
  // Other reasons are that the request has a length, too.
  if (code === 'HPE_INVALID_TRANSFER_ENCODING' && /invalid/i.test(reason)) return unknownEncoding;
  if (code === 'HPE_HEADER_OVERFLOW') return tooLong;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return tooSlow;
  return code?.startsWith('HPE_') ? malformed : undefined;
}

/** Returns an answer as it is sent, for a connection on which Node can send none. */
export const encoded = ({ status, headers, body }: WireReply): string =>
  [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...Object.entries(headers).map((field) => field.join(': ')),
    '',
    body,
  ].join('\r\n');

export const notFound = plain(404, '404 page not found\n');

/** Refuses a request of a web page. etcd has no such answer. */
export const forbidden = (why: string): WireReply => plain(403, `403 Forbidden: ${why}\n`);

/** Refuses a request because a limit is reached. Clients of this package then fail over to another server. */
export const overloaded = (why: string): WireReply => plain(503, `503 Service Unavailable: ${why}\n`);

export const notAllowed = (methods: readonly string[]): WireReply =>
  plain(405, 'Method Not Allowed\n', { Allow: methods.join(',') });

export const page = async ({ methods, reply }: Page, method: string): Promise<WireReply> =>
  methods.includes(method) ? reply() : notAllowed(methods);

const HTML: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' };

/** Redirects to the clean spelling of a path, as etcd does. Only GET and HEAD get an HTML page. */
export function movedTo(target: Target, method: string, status: 301 | 307): WireReply {
  const to = location(target);
  if (method !== 'GET' && method !== 'HEAD') return { status, headers: { Location: to }, body: '' };
  const link = to.replace(/[&<>"']/g, (char) => HTML[char] ?? char);
  return {
    status,
    headers: { 'Content-Type': 'text/html; charset=utf-8', Location: to },
    body: `<a href="${link}">${status === 301 ? 'Moved Permanently' : 'Temporary Redirect'}</a>.\n\n`,
  };
}
