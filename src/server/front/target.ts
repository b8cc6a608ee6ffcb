import { posix } from 'node:path';
import { badEscape, encodePath, unescapeBytes } from '../../v2/wire.ts';

/** Path and query of a request. */
export interface Target {
  /** Decoded. */
  readonly path: string;
  /** As received. */
  readonly query: string;
}

/** Parses the target in a request line as Go's server does. Returns undefined if the target is not a valid URL. */
export function parseTarget(url: string): Target | undefined {
  const [, path = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(url.replace(/^https?:\/\/[^/?]*/i, '')) ?? [];
  return badEscape(path) === undefined ? { path: unescapeBytes(path), query } : undefined;
}

/** Removes `//`, `.` and `..` from a path. Go's server redirects every other spelling to this one. */
export const clean = (path: string): string => posix.normalize(path.startsWith('/') ? path : `/${path}`);

/** Encodes a target for a `Location` header, with Go's escapes. */
export function location({ path, query }: Target): string {
  const escaped = encodePath(path).replace(/[!*'()?#]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  return query === '' ? escaped : `${escaped}?${query}`;
}
