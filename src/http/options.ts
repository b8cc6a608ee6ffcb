import { X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { checkSeconds, show } from '../base/checks.ts';
import type { OptionNames } from '../base/option-names.ts';

/** One PEM text or several. */
export type Pem = string | Buffer | readonly (string | Buffer)[];

/** How to reach the members of a cluster. */
export interface HttpOptions {
  /**
   * The members: `http://host:port`, `https://host:port`, or `host:port`, which means https if a TLS option is given, else http.
   * A list, or one string, separated by commas. Default `http://127.0.0.1:2379`.
   */
  readonly endpoints?: string | readonly string[];
  /**
   * Whether to use the endpoints in random order, so that the clients of a cluster share its members. Default true. A client keeps to
   * the member that it has chosen. `false`: in the order given, for example with the nearest member first.
   */
  readonly randomizeEndpoints?: boolean;
  /**
   * Instead of `endpoints`: finds the members by DNS. Uses the SRV records of the first of these names with records:
   * 1. `_etcd-client-ssl._tcp.<srvDomain>`, with https
   * 2. `_etcd-client._tcp.<srvDomain>`, with http; not if a TLS option is given
   * 3. `_etcd._tcp.<srvDomain>`, as python-etcd, with https if a TLS option is given, else with http
   *
   * Looks them up again after a minute, and when no member answers. If that fails, the client keeps the members that it knows.
   */
  readonly srvDomain?: string;
  /**
   * Part of the names of the SRV records, as in etcdctl's `--discovery-srv-name`: the names are then
   * `_etcd-client-ssl-<srvName>._tcp.<srvDomain>` and `_etcd-client-<srvName>._tcp.<srvDomain>`.
   */
  readonly srvName?: string;
  /**
   * Seconds to wait for a member's answer before failing over to the next member. Default 10; etcd itself gives up after 7. For a
   * read, such as a long listing, these are the seconds without a further piece of the answer; it ends after six times as many.
   */
  readonly readTimeout?: number;
  /** User name for basic authentication, or for the login on v3; requires `password`. */
  readonly username?: string;
  /** Password of the user; requires `username`. */
  readonly password?: string;
  /** Certificate authorities to trust instead of Node's defaults. Certificates are always verified. */
  readonly ca?: Pem;
  /** Client certificate; requires `key`. */
  readonly cert?: Pem;
  /** Private key of the client certificate; requires `cert`. */
  readonly key?: Pem;
  /**
   * Id of the only cluster to accept, in lower-case hex digits as in the header `X-Etcd-Cluster-Id`. If another cluster answers,
   * calls reject with `EtcdClusterIdChanged`.
   */
  readonly expectedClusterId?: string;
}

export const HTTP_OPTIONS = {
  endpoints: true,
  randomizeEndpoints: true,
  srvDomain: true,
  srvName: true,
  readTimeout: true,
  username: true,
  password: true,
  ca: true,
  cert: true,
  key: true,
  expectedClusterId: true,
} satisfies OptionNames<HttpOptions>;

export type TlsSettings = Pick<HttpOptions, 'ca' | 'cert' | 'key'>;

export interface HttpSettings {
  /** Origins, such as `http://127.0.0.1:2379`; undefined: look up `srvDomain`. */
  readonly endpoints: readonly string[] | undefined;
  readonly randomizeEndpoints: boolean;
  readonly srvDomain: string | undefined;
  readonly srvName: string | undefined;
  /** First part of the path of versioned requests, such as `/v2`. */
  readonly versionPrefix: string;
  readonly readTimeout: number;
  /** Shown in error messages. */
  readonly username: string | undefined;
  readonly authorization: string | undefined;
  readonly tls: TlsSettings;
  readonly expectedClusterId: string | undefined;
}

/**
 * Checks the options and fills in the defaults.
 * @throws {TypeError | RangeError} if an option is invalid; the message shows its value, but never a password
 */
export function checkHttpOptions(options: HttpOptions, versionPrefix: string): HttpSettings {
  const { randomizeEndpoints = true, srvDomain, srvName, expectedClusterId, readTimeout = 10 } = options;
  if (srvDomain !== undefined && options.endpoints !== undefined)
    throw new TypeError('endpoints and srvDomain cannot be used together');
  if (srvDomain !== undefined && (typeof srvDomain !== 'string' || srvDomain === ''))
    throw new RangeError(`srvDomain must be a domain name, got ${show(srvDomain)}`);
  if (srvName !== undefined && srvDomain === undefined) throw new TypeError('srvName requires srvDomain');
  if (srvName !== undefined && (typeof srvName !== 'string' || srvName === ''))
    throw new RangeError(`srvName must be a part of a domain name, got ${show(srvName)}`);
  if (typeof randomizeEndpoints !== 'boolean')
    throw new TypeError(`randomizeEndpoints must be true or false, got ${show(randomizeEndpoints)}`);
  checkSeconds('readTimeout', readTimeout);
  if (
    expectedClusterId !== undefined &&
    !(typeof expectedClusterId === 'string' && /^[0-9a-f]+$/.test(expectedClusterId))
  )
    throw new RangeError(`expectedClusterId must be lower-case hex digits, got ${show(expectedClusterId)}`);
  return {
    endpoints: srvDomain === undefined ? [...new Set(originsOf(options))] : undefined,
    randomizeEndpoints,
    srvDomain,
    srvName,
    versionPrefix,
    readTimeout,
    authorization: checkCredentials(options),
    username: options.username,
    tls: checkTls(options),
    expectedClusterId,
  };
}

/**
 * Returns the origin of each endpoint, in the order given.
 * @throws {RangeError} if an endpoint is invalid; the message shows it, but never a password
 */
export function originsOf({ endpoints = 'http://127.0.0.1:2379', ca, cert, key }: HttpOptions): string[] {
  const list = typeof endpoints === 'string' ? listOf(endpoints) : endpoints;
  if (!Array.isArray(list) || list.length === 0)
    throw new RangeError(`endpoints must be a URL or a list of URLs, got ${show(endpoints)}`);
  const scheme = [ca, cert, key].some((pem) => pem !== undefined) ? 'https' : 'http';
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

function originOf(endpoint: unknown, scheme: string): string {
  const shown = show(typeof endpoint === 'string' ? withoutCredentials(endpoint) : endpoint);
  if (typeof endpoint === 'string' && endpoint.includes('@'))
    throw new RangeError(`endpoint must not contain credentials (use username and password), got ${shown}`);
  const text = typeof endpoint === 'string' && HOST_AND_PORT.test(endpoint) ? `${scheme}://${endpoint}` : endpoint;
  if (typeof text !== 'string' || !URL.canParse(text))
    throw new RangeError(`endpoint must be host:port or a URL such as "http://127.0.0.1:2379", got ${shown}`);
  const url = new URL(text);
  if (!/^https?:$/.test(url.protocol) || url.pathname !== '/' || url.search !== '' || url.hash !== '')
    throw new RangeError(`endpoint must be http(s)://host:port without a path or query, got ${shown}`);
  return url.origin;
}

/** Removes parts that may be a password: the text before an @, a port that is not a number, a query or fragment about credentials. */
const withoutCredentials = (endpoint: string): string =>
  endpoint
    .replace(/^.*@/s, '…@')
    .replace(/(?<!\[[^\]]*):(?!\/\/|\d*(?:[/?#]|$)).*$/s, ':…')
    .replace(/([?#]).*(?:pass|pw|secret|token|user|auth).*$/is, '$1…');

/** Returns a user name for a message, cut at the first unusual character: a password may follow. */
export function showUser(username: string): string {
  const [rest = ''] = /[^\p{L}\p{M}\p{N}._@+-].*$/su.exec(username) ?? [];
  const name = username.slice(0, username.length - rest.length);
  return show(name + (rest.startsWith(':') ? ':…' : rest && '…'));
}

function checkCredentials({ username, password }: HttpOptions): string | undefined {
  if (username === undefined && password === undefined) return undefined;
  if (typeof username !== 'string' || username === '' || username.includes(':')) {
    const shown = typeof username === 'string' ? showUser(username) : typeof username;
    throw new RangeError(`username must be a non-empty string without ":", got ${shown}`);
  }
  if (typeof password !== 'string')
    throw new RangeError(`username ${showUser(username)} needs a password, got ${typeof password}`);
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/**
 * Checks certificates and a private key.
 * @throws {TypeError | RangeError} if one of them is invalid; the message never shows a private key
 */
export function checkTls({ ca, cert, key }: TlsSettings): TlsSettings {
  if ((cert === undefined) !== (key === undefined))
    throw new TypeError(`cert and key must be given together, got only ${cert === undefined ? 'key' : 'cert'}`);
  if (ca !== undefined && !isCertificates(ca))
    throw new RangeError(`ca must be certificates as PEM text (not the path of a file), got ${showPem(ca)}`);
  const authority = ca === undefined ? {} : { ca };
  if (cert === undefined || key === undefined) return authority;
  const own = { cert, key };
  try {
    createSecureContext(own as SecureContextOptions);
  } catch (error) {
    throw new RangeError(`cert and key must be a pair as PEM text (not the paths of files): ${reasonOf(error)}`);
  }
  return { ...authority, ...own };
}

/** Whether this is one or more certificates in PEM. Node ignores any other text in `ca`, so check here. */
function isCertificates(ca: Pem): boolean {
  const list: readonly unknown[] = Array.isArray(ca) ? ca : [ca];
  return list.length > 0 && list.every((pem) => String(pem).includes('-----BEGIN ') && isCertificate(pem));
}

function isCertificate(pem: unknown): boolean {
  try {
    new X509Certificate(pem as string);
    return true;
  } catch {
    return false;
  }
}

/** Shows only the label of PEM text, or the path of a file. The rest might be a private key. */
function showPem(ca: unknown): string {
  const [label] = typeof ca === 'string' ? (/-----BEGIN [^-]*-----/.exec(ca) ?? []) : [];
  return show(label ?? (typeof ca === 'string' ? ca.replace(/^.*\n.*$/s, '…') : ca));
}

/** Returns OpenSSL's reason. Node's own message might show the value of an option. */
const reasonOf = (error: unknown): unknown =>
  error instanceof Error && 'reason' in error ? error.reason : 'unknown reason';
