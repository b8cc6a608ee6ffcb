import { checkBoolean, checkSeconds, show } from '../base/checks.ts';
import type { OptionNames } from '../base/option-names.ts';
import { basicAuthorization, checkUser, type UserOptions } from './checks/credentials.ts';
import { originsOf } from './checks/endpoints.ts';
import { Password } from './password.ts';
import { type Proxies, proxiesIn } from './sockets/proxies.ts';
import { mayChange, type TlsFileOptions, TlsFiles } from './tls/files.ts';
import { checkTls, type TlsSettings } from './tls/settings.ts';

/** How to reach the members of a cluster. */
export interface HttpOptions extends UserOptions, TlsFileOptions {
  /**
   * The members: `http://host:port`, `https://host:port`, or `host:port`, which means https if a TLS option is given, else http.
   * A list, or one string, separated by commas. Default `http://127.0.0.1:2379`. Also a URL with a path, below which a
   * reverse proxy serves etcd, and a Unix socket: `unix:///run/etcd.sock`, or with
   * TLS `unixs:///run/etcd.sock`, whose certificate must then be for `localhost` or `serverName`.
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
   * Whether to use the other members of the cluster, too, as etcd's member list names them. Their client URLs are added to the endpoints
   * above, and removed when the list no longer has them; the endpoints above always stay. The client reads the list every ten seconds, while
   * it makes calls. It adds a URL only if a server of the same cluster answers there, by HTTP, and https if all endpoints above use
   * https. Default false.
   */
  readonly followMembers?: boolean;
  /**
   * Whether to reach the members through the proxy that the environment names when the client is created: `HTTPS_PROXY`, or `HTTP_PROXY`, except
   * for the hosts in `NO_PROXY`. Also for http, the proxy must open tunnels (CONNECT). It looks up the host names of the members. Not for Unix
   * sockets. Default false: these variables have no effect.
   */
  readonly proxyFromEnvironment?: boolean;
  /**
   * Seconds to wait for a member's answer before failing over to the next member. Default 10; etcd itself gives up after 7. For a
   * read, such as a long listing, these are the seconds without a further piece of the answer; it ends after six times as many.
   */
  readonly readTimeout?: number;
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
  followMembers: true,
  proxyFromEnvironment: true,
  readTimeout: true,
  username: true,
  password: true,
  ca: true,
  cert: true,
  key: true,
  passphrase: true,
  caFile: true,
  certFile: true,
  keyFile: true,
  serverName: true,
  expectedClusterId: true,
} satisfies OptionNames<HttpOptions>;

export interface HttpSettings {
  /** Origins, with a path if there is one, such as `http://127.0.0.1:2379`, and Unix sockets; undefined: look up `srvDomain`. */
  readonly endpoints: readonly string[] | undefined;
  readonly randomizeEndpoints: boolean;
  readonly srvDomain: string | undefined;
  readonly srvName: string | undefined;
  /** First part of the path of versioned requests, such as `/v2`. */
  readonly versionPrefix: string;
  readonly readTimeout: number;
  readonly followMembers: boolean;
  /** undefined: use no proxy. */
  readonly proxies: Proxies | undefined;
  /** Shown in error messages. */
  readonly username: string | undefined;
  readonly password: Password | undefined;
  /** The header of basic authentication, if the password never changes. */
  readonly authorization: string | undefined;
  /** Those at the start, if files have them. */
  readonly tls: TlsSettings;
  readonly tlsFiles: TlsFiles | undefined;
  readonly expectedClusterId: string | undefined;
}

/**
 * Checks the options and fills in the defaults.
 * @throws {TypeError | RangeError} if an option is invalid; the message shows its value, but never a password
 */
export function checkHttpOptions(options: HttpOptions, versionPrefix: string): HttpSettings {
  const { randomizeEndpoints = true, srvDomain, srvName, expectedClusterId, readTimeout = 10 } = options;
  const { followMembers = false, proxyFromEnvironment = false } = options;
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
  checkBoolean('followMembers', followMembers);
  checkBoolean('proxyFromEnvironment', proxyFromEnvironment);
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
    followMembers,
    proxies: proxyFromEnvironment ? proxiesIn() : undefined,
    ...userOf(options),
    ...tlsOf(options),
    expectedClusterId,
  };
}

function tlsOf(options: HttpOptions): Pick<HttpSettings, 'tls' | 'tlsFiles'> {
  const { ca, cert, key, passphrase, serverName, caFile, certFile, keyFile } = options;
  const given = Object.entries({ ca, cert, key, passphrase, serverName, caFile, certFile, keyFile });
  const tls: TlsFileOptions = Object.fromEntries(given.filter(([, value]) => value !== undefined));
  if (!mayChange(tls)) return { tls: checkTls(tls as TlsSettings), tlsFiles: undefined };
  const tlsFiles = new TlsFiles(tls);
  return { tls: tlsFiles.current, tlsFiles };
}

function userOf(options: UserOptions): Pick<HttpSettings, 'username' | 'password' | 'authorization'> {
  checkUser(options);
  const { username, password } = options;
  if (username === undefined || password === undefined)
    return { username, password: undefined, authorization: undefined };
  const authorization = typeof password === 'string' ? basicAuthorization(username, password) : undefined;
  return { username, password: new Password(password), authorization };
}
