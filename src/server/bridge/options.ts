import { AsyncContext } from '../../base/async-context.ts';
import { checkBoolean, checkInteger, show } from '../../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../../base/option-names.ts';
import type { EtcdClientOptions } from '../../client.ts';
import { TlsFiles } from '../../http/tls/files.ts';
import type { Pem } from '../../http/tls/settings.ts';
import { checkKey } from '../../v2/paths.ts';
import { V3_OPTIONS, type V3ClientOptions } from '../../v3/options.ts';
import { checkListening, type Listening, type ListeningOptions } from '../listening.ts';
import { BACKENDS, type BridgeApi } from './backend.ts';
import type { BridgeRecord } from './records.ts';

/** How a bridge serves HTTPS: with `cert` and `key`, or with `certFile` and `keyFile`. */
export interface BridgeTls {
  /** The bridge's certificate, as PEM text. */
  readonly cert?: Pem;
  /** Its private key. */
  readonly key?: Pem;
  /** Decrypts the key. */
  readonly passphrase?: string;
  /** Certificate authorities: a client must have a certificate of one of them. Default: clients need none. */
  readonly ca?: Pem;
  /**
   * Path of a file with `cert`. When this file, `keyFile` or `caFile` changes, new connections of clients use it within half a second. If the
   * new files cannot be used, the bridge emits a warning with the code `ETCD_LOCK_TLS_FILES`, and keeps the old ones.
   */
  readonly certFile?: string;
  /** Path of a file with `key`. */
  readonly keyFile?: string;
  /** Path of a file with `ca`. */
  readonly caFile?: string;
}

/** Options of {@link Bridge.start}: where to listen, and how to reach etcd. */
export interface BridgeOptions
  extends Omit<EtcdClientOptions, 'api' | 'versionPrefix' | 'lockPrefix'>,
    ListeningOptions {
  /**
   * Where clients hold their locks: `v3`, or `both` v2 and v3 at the same time. Use `both` only during a
   * [move](../../../docs/moving.md) from v2 to v3. All bridges that a client may use must have the same value. Default `v3`.
   */
  readonly api?: BridgeApi | undefined;
  /** Parent directory of all lock queues, the same for clients and in etcd. A key of etcd v2, so not empty. Default `/_locks`. */
  readonly lockPrefix?: string;
  /** URLs of all bridges, at least one, for clients that ask for the members of the cluster. Default: the URL of this bridge. */
  readonly advertise?: readonly string[];
  /** Serves HTTPS. Default: HTTP. */
  readonly tls?: BridgeTls | undefined;
  /** Maximum number of connections. A further one replaces one that is idle, or is closed. An integer ≥ 1. Default 20,000. */
  readonly maxConnections?: number | undefined;
  /** Maximum number of long polls; further polls get status 503 after one second. An integer ≥ 1. Default 10,000. */
  readonly maxPolls?: number | undefined;
  /** Whether to serve `/metrics`, in the text format of Prometheus. Default false. */
  readonly metrics?: boolean | undefined;
  /**
   * Called with a record of each event, for a log. Records contain no values of keys, and no passwords. Must not throw.
   * Runs in the async context (`AsyncLocalStorage`) in which the bridge was started.
   */
  readonly log?: ((record: BridgeRecord) => void) | undefined;
}

const OPTIONS = {
  ...V3_OPTIONS,
  api: true,
  port: true,
  host: true,
  socket: true,
  socketMode: true,
  advertise: true,
  tls: true,
  maxConnections: true,
  maxPolls: true,
  metrics: true,
  log: true,
} satisfies OptionNames<BridgeOptions>;

const TLS_OPTIONS = {
  cert: true,
  key: true,
  passphrase: true,
  ca: true,
  certFile: true,
  keyFile: true,
  caFile: true,
} satisfies OptionNames<BridgeTls>;

/**
 * Checked options of a bridge.
 * @internal
 */
export interface BridgeSettings extends Listening, Pick<BridgeOptions, 'log'> {
  /** For HTTPS. */
  readonly tls: TlsFiles | undefined;
  readonly api: BridgeApi;
  readonly advertise: readonly string[] | undefined;
  readonly maxConnections: number;
  readonly maxPolls: number;
  readonly metrics: boolean;
  /** Hosts that a request may have in its `Host` header. */
  readonly hosts: readonly string[];
  /** How to reach etcd. */
  readonly cluster: V3ClientOptions;
}

/**
 * Checks the options and fills in the defaults. The client of etcd checks the options that say how to reach etcd.
 * @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its name or value, but never a private key
 * @internal
 */
export function checkBridgeOptions(options: BridgeOptions): BridgeSettings {
  checkOptionNames(options, OPTIONS);
  const { api = 'v3', port, host, socket, socketMode, advertise, tls, metrics = false, log, ...rest } = options;
  const { maxConnections = 20_000, maxPolls = 10_000, ...cluster } = rest;
  if (!Object.hasOwn(BACKENDS, api)) throw new RangeError(`api of a bridge must be 'v3' or 'both', got ${show(api)}`);
  const listening = checkListening({ port, host, socket, socketMode });
  checkInteger('maxConnections', maxConnections, 1);
  checkInteger('maxPolls', maxPolls, 1);
  checkBoolean('metrics', metrics);
  if (log !== undefined && typeof log !== 'function') throw new TypeError(`log must be a function, got ${show(log)}`);
  if (tls !== undefined && socket !== undefined) throw new TypeError('tls cannot be used together with socket');
  const files = tls === undefined ? undefined : checkBridgeTls(tls);
  if (advertise !== undefined && !(Array.isArray(advertise) && advertise.length > 0))
    throw new TypeError(`advertise must be a list of URLs, got ${show(advertise)}`);
  const { lockPrefix } = cluster;
  if (lockPrefix !== undefined && !/^\/[^/]/.test(lockPrefix))
    throw new RangeError(
      `lockPrefix of a bridge must begin with "/" and a name, such as "/_locks", got ${show(lockPrefix)}`,
    );
  if (lockPrefix !== undefined) checkKey('lockPrefix', lockPrefix);
  const hosts = [listening.host, ...(advertise ?? []).map(hostOf)];
  const logged = log && inThisContext(log);
  return { ...listening, api, hosts, advertise, tls: files, maxConnections, maxPolls, metrics, log: logged, cluster };
}

/** Returns a `log` that always runs in the async context of this call, whoever causes the record. */
function inThisContext(log: NonNullable<BridgeOptions['log']>): typeof log {
  const context = new AsyncContext();
  return (record) => context.run(() => log(record));
}

function checkBridgeTls(tls: BridgeTls): TlsFiles {
  if (typeof tls !== 'object' || tls === null) throw new TypeError(`tls must be an object, got ${show(tls)}`);
  checkOptionNames(tls, TLS_OPTIONS);
  if ([tls.cert, tls.key, tls.certFile, tls.keyFile].every((option) => option === undefined))
    throw new TypeError('tls must have cert and key');
  return new TlsFiles(tls);
}

/**
 * Returns the host of an advertised URL.
 * @throws {RangeError} if the URL is invalid
 */
function hostOf(url: string): string {
  if (typeof url === 'string' && /^https?:\/\/[^/]+\/?$/.test(url) && URL.canParse(url)) return new URL(url).hostname;
  throw new RangeError(`advertise must be URLs such as http://host:4001, got ${show(url)}`);
}
