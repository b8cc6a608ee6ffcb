import { show } from '../../base/checks.ts';
import { withoutCredentials } from '../checks/endpoints.ts';

/** The proxies that the environment names. */
export interface Proxies {
  /** URL of the proxy for http, with the credentials if it has some. */
  readonly http: string | undefined;
  readonly https: string | undefined;
  /** Hosts without a proxy. */
  readonly except: readonly Exception[];
}

/** A host and the names below it. */
interface Exception {
  /** `*`: all hosts. */
  readonly host: string;
  /** undefined: all ports. */
  readonly port: string | undefined;
}

/**
 * Reads the variables as undici's `EnvHttpProxyAgent` does: a lower-case name before the same in upper case, and `HTTP_PROXY` for https, too,
 * unless there is `HTTPS_PROXY`.
 * @throws {RangeError} if a variable is no URL of a proxy; the message has its name and value, but never a password
 */
export function proxiesIn(env: NodeJS.ProcessEnv = process.env): Proxies {
  const http = proxyIn(env, 'http_proxy');
  const [, except = ''] = given(env, 'no_proxy') ?? [];
  return { http, https: proxyIn(env, 'https_proxy') ?? http, except: except.split(/[,\s]+/).flatMap(exceptionOf) };
}

/** Returns the URL of the proxy to use for a member; undefined: none. */
export function proxyFor(origin: string, { http, https, except }: Proxies): string | undefined {
  const url = new URL(origin);
  const port = portOf(url);
  const isExcepted = except.some(
    (one) =>
      one.host === '*' ||
      ((one.port === undefined || one.port === port) &&
        (url.hostname === one.host || url.hostname.endsWith(`.${one.host}`))),
  );
  if (isExcepted) return undefined;
  return url.protocol === 'https:' ? https : http;
}

/** Returns the port of a URL, also if it is the default one. */
export const portOf = ({ port, protocol }: URL): string => port || (protocol === 'https:' ? '443' : '80');

/** Returns the variable that is set: its name and its value. */
function given(env: NodeJS.ProcessEnv, name: string): readonly [name: string, value: string] | undefined {
  const found = [name, name.toUpperCase()].find((one) => env[one] !== undefined);
  return found === undefined ? undefined : [found, env[found] ?? ''];
}

function proxyIn(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const [variable, text = ''] = given(env, name) ?? [];
  if (text === '') return undefined;
  if (isProxy(text)) return text;
  throw new RangeError(
    `${variable} must be the URL of a proxy such as "http://proxy.example:3128", got ${show(withoutCredentials(text))}`,
  );
}

function isProxy(text: string): boolean {
  try {
    const url = new URL(text);
    credentialsIn(url);
    return /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search === '' && url.hash === '';
  } catch {
    return false;
  }
}

/**
 * Returns the user and the password in a URL, separated by a colon.
 * @throws {URIError} if they cannot be decoded
 */
export const credentialsIn = ({ username, password }: URL): string =>
  [username, password].map(decodeURIComponent).join(':');

function exceptionOf(text: string): readonly Exception[] {
  const [, host = text, port] = /^(.+):(\d+)$/.exec(text) ?? [];
  return host === '' ? [] : [{ host: host.replace(/^\*?\./, '').toLowerCase(), port }];
}
