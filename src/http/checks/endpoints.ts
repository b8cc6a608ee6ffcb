import { checkLength, show } from '../../base/checks.ts';
import type { TlsFileOptions } from '../tls/files.ts';

/** The members, and what makes https the default. */
interface EndpointOptions extends TlsFileOptions {
  readonly endpoints?: string | readonly string[];
}

/** How to connect to a member. */
export interface Address {
  /** Its origin, such as `http://etcd-1:2379`. Of a Unix socket, with the host `localhost`. */
  readonly origin: string;
  /** Where a reverse proxy serves it, such as `/etcd`; else empty. */
  readonly path: string;
  /** Path of its Unix socket. */
  readonly socketPath?: string;
}

/** A Unix socket, as etcd's own tools write it. After `unix://`, there may also be a relative path. */
const SOCKET = /^unix(s?):\/\/(.+)$/s;

/** Returns how to connect to a member, from its URL as {@link originsOf} returns it. */
export function addressOf(url: string): Address {
  const [, secure = '', socketPath] = SOCKET.exec(url) ?? [];
  if (socketPath !== undefined) return { origin: `http${secure}://localhost`, path: '', socketPath };
  const { origin, pathname } = new URL(url);
  return { origin, path: withoutSlashes(pathname) };
}

/**
 * Returns the origin of each endpoint with its path, or the URL of its Unix socket, in the order given.
 * @throws {RangeError} if an endpoint is invalid; the message shows it, but never a password
 */
export function originsOf({ endpoints = 'http://127.0.0.1:2379', ...tls }: EndpointOptions): string[] {
  const list = typeof endpoints === 'string' ? listOf(endpoints) : endpoints;
  if (!Array.isArray(list) || list.length === 0)
    throw new RangeError(`endpoints must be a URL or a list of URLs, got ${show(endpoints)}`);
  const { ca, cert, key, serverName, caFile, certFile } = tls;
  const scheme = [ca, cert, key, serverName, caFile, certFile].some((option) => option !== undefined)
    ? 'https'
    : 'http';
  return list.map((endpoint) => originOf(endpoint, scheme));
}

/** Splits a text at its commas. A text that may contain a password is not split: the password may contain a comma. */
const listOf = (text: string): string[] =>
  text.includes('@')
    ? [text]
    : text
        .split(',')
        .map((endpoint) => endpoint.trim())
        .filter((endpoint) => endpoint !== '');

/** An endpoint without a scheme. Its port is required: the default port of http is not etcd's. */
const HOST_AND_PORT = /^[^/]*:\d+\/?$/;

/** Matches a path that ends with that of etcd's own API. */
const API_PATH = /\/(v2|v3|v3alpha|v3beta)(\/keys)?\/*$/;

const withoutSlashes = (path: string): string => path.replace(/\/+$/, '');

/** Maximum bytes of the path of a Unix socket on Linux. */
const LONGEST_PATH = 107;

function originOf(endpoint: unknown, scheme: string): string {
  const shown = show(typeof endpoint === 'string' ? withoutCredentials(endpoint) : endpoint);
  if (typeof endpoint === 'string' && endpoint.includes('@'))
    throw new RangeError(`endpoint must not contain credentials (use username and password), got ${shown}`);
  if (typeof endpoint === 'string' && /^unixs?:\/|^unixs?:$/.test(endpoint)) return socketOf(endpoint, shown);
  const text = typeof endpoint === 'string' && HOST_AND_PORT.test(endpoint) ? `${scheme}://${endpoint}` : endpoint;
  if (typeof text !== 'string' || !URL.canParse(text))
    throw new RangeError(`endpoint must be host:port or a URL such as "http://127.0.0.1:2379", got ${shown}`);
  const url = new URL(text);
  if (!/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '')
    throw new RangeError(`endpoint must be http(s)://host:port without a query, got ${shown}`);
  if (API_PATH.test(url.pathname))
    throw new RangeError(`endpoint must not contain the path of an API, which the client adds, got ${shown}`);
  return url.origin + withoutSlashes(url.pathname);
}

function socketOf(endpoint: string, shown: string): string {
  const { socketPath = '' } = addressOf(endpoint);
  if (socketPath === '' || /\0|\/$/.test(socketPath))
    throw new RangeError(`endpoint must be a Unix socket such as "unix:///run/etcd.sock", got ${shown}`);
  checkLength('the path of a Unix socket', socketPath, LONGEST_PATH);
  return endpoint;
}

/** Removes parts that may be a password: the text before an @, a port that is not a number, a query or fragment about credentials. */
export const withoutCredentials = (endpoint: string): string =>
  endpoint
    .replace(/^.*@/s, '…@')
    .replace(/(?<!\[[^\]]*):(?!\/\/|\d*(?:[/?#]|$)).*$/s, ':…')
    .replace(/([?#]).*(?:pass|pw|secret|token|user|auth).*$/is, '$1…');
