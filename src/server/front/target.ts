import { posix } from 'node:path';
import { badEscape, encodePath, unescapeBytes } from '../../v2/wire.ts';

/** What a request asks for. */
export interface Target {
  /** Decoded. */
  readonly path: string;
  /** As it came. */
  readonly query: string;
}

/** Reads the first line's target as Go's server does; undefined where it is no URL. */
export function parseTarget(url: string): Target | undefined {
  const [, path = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(url.replace(/^https?:\/\/[^/?]*/i, '')) ?? [];
  return badEscape(path) === undefined ? { path: unescapeBytes(path), query } : undefined;
}

/** Without `//`, `.` and `..`: the only form in which Go's server answers. */
export const clean = (path: string): string => posix.normalize(path.startsWith('/') ? path : `/${path}`);

/** A path and query for a `Location` header, escaped as Go does. */
export function location({ path, query }: Target): string {
  const escaped = encodePath(path).replace(/[!*'()?#]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  return query === '' ? escaped : `${escaped}?${query}`;
}
