/** Answers that are not about keys. All but `forbidden` and `overloaded` are byte for byte what etcd sends. */
import type { WireReply } from '../../v2/wire.ts';
import type { Page } from './info.ts';
import { location, type Target } from './target.ts';

const plain = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): WireReply => ({
  status,
  headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff', ...headers },
  body,
});

export const malformed: WireReply = {
  status: 400,
  headers: { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' },
  body: '400 Bad Request',
};

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
export function movedTo(target: Target, method: string): WireReply {
  const to = location(target);
  if (method !== 'GET' && method !== 'HEAD') return { status: 301, headers: { Location: to }, body: '' };
  const link = to.replace(/[&<>"']/g, (char) => HTML[char] ?? char);
  return {
    status: 301,
    headers: { 'Content-Type': 'text/html; charset=utf-8', Location: to },
    body: `<a href="${link}">Moved Permanently</a>.\n\n`,
  };
}
