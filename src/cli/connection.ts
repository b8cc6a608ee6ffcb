import { type Command, Option } from 'commander';
import type { EtcdApi, EtcdClientOptions, StoreApi } from '../client.ts';
import { showUser } from '../http/checks/credentials.ts';
import { UsageError } from './exit-codes.ts';
import { nameOfFile, pemFile, readFirstLine } from './files.ts';

/** Connection and authentication options from the command line. They take precedence over environment variables. */
export interface ConnectionOptions {
  readonly api?: string;
  readonly endpoints?: string;
  readonly discoverySrv?: string;
  readonly discoverySrvName?: string;
  readonly cacert?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly keyPassphraseFile?: string;
  readonly tlsServerName?: string;
  readonly user?: string;
  readonly password?: string;
  readonly passwordFile?: string;
  readonly lockPrefix?: string;
  readonly followMembers?: boolean;
  readonly proxyFromEnvironment?: boolean;
}

/** Options with a value. */
type ValueName = Exclude<keyof ConnectionOptions, 'followMembers' | 'proxyFromEnvironment'>;

export type Environment = Readonly<Record<string, string | undefined>>;

interface Setting {
  readonly name: keyof ConnectionOptions;
  /** Flags as in etcdctl: that of API 2, then that of API 3 if it differs. The last long flag is the name in commander. */
  readonly flags: string;
  readonly description: string;
  /** Variables to read if the flag is absent. The first non-empty one is used. */
  readonly env?: readonly string[];
}

/** Heading of these options in the help. */
export const CONNECTION_OPTIONS =
  'Connection and authentication options, for all commands except serve and completion:';

/** All connection and authentication options, also for `docs/cli.md`. */
export const connectionSettings: readonly Setting[] = [
  {
    name: 'api',
    flags: '--api <version>',
    description:
      'etcd API of your locks: v2 or v3. The two are different stores; all clients of a lock must use the same (default: v2; of "bridge": v3). ' +
      'During a move from v2 to v3, "run", "elect" and "bridge" also accept "--api both": they then hold each lock in both stores; "ui" shows both. ETCDCTL_API has no effect',
    // Not ETCDCTL_API: it chooses what etcdctl shows, and must not decide where locks are.
    env: ['ETCD_LOCK_API'],
  },
  {
    name: 'endpoints',
    flags: '--endpoints <urls>',
    description: 'etcd members, comma-separated (default: http://127.0.0.1:2379)',
    env: ['ETCD_ENDPOINTS', 'ETCDCTL_ENDPOINTS'],
  },
  {
    name: 'discoverySrv',
    flags: '-D, --discovery-srv <domain>',
    description:
      'discover members by the SRV records of _etcd-client-ssl._tcp.<domain>, _etcd-client._tcp.<domain> or _etcd._tcp.<domain>: the first that exist. The variables of --endpoints take precedence over ETCDCTL_DISCOVERY_SRV',
    env: ['ETCDCTL_DISCOVERY_SRV'],
  },
  {
    name: 'discoverySrvName',
    flags: '--discovery-srv-name <name>',
    description:
      'with --discovery-srv, use the SRV records of _etcd-client-ssl-<name>._tcp.<domain> or _etcd-client-<name>._tcp.<domain>',
    env: ['ETCDCTL_DISCOVERY_SRV_NAME'],
  },
  {
    name: 'cacert',
    flags: '--ca-file, --cacert <file>',
    description: 'PEM file with the CA certificates to trust; read again when it changes, as the next two',
    env: ['ETCDCTL_CACERT', 'ETCDCTL_CA_FILE'],
  },
  {
    name: 'cert',
    flags: '--cert-file, --cert <file>',
    description: 'PEM file with the client certificate',
    env: ['ETCDCTL_CERT', 'ETCDCTL_CERT_FILE'],
  },
  {
    name: 'key',
    flags: '--key-file, --key <file>',
    description: 'PEM file with the private key of the client certificate',
    env: ['ETCDCTL_KEY', 'ETCDCTL_KEY_FILE'],
  },
  {
    name: 'keyPassphraseFile',
    flags: '--key-passphrase-file <file>',
    description: 'file with the passphrase of the private key in its first line',
  },
  {
    name: 'tlsServerName',
    flags: '--tls-server-name <name>',
    description: 'host name that the certificate of each member must be for, instead of the host of its URL',
  },
  {
    name: 'user',
    flags: '--username, --user <name[:password]>',
    description: 'etcd user; a password given here is visible to other users of this machine',
    env: ['ETCDCTL_USER', 'ETCDCTL_USERNAME'],
  },
  {
    name: 'passwordFile',
    flags: '--password-file <file>',
    description: 'file with the password in its first line; read again when etcd refuses the password',
  },
  {
    name: 'password',
    flags: '--password <text>',
    description: 'password; visible to other users of this machine, so prefer --password-file or the environment',
    env: ['ETCDCTL_PASSWORD'],
  },
  {
    name: 'followMembers',
    flags: '--follow-members',
    description: 'also use the other members of the cluster, as the member list names them',
  },
  {
    name: 'proxyFromEnvironment',
    flags: '--proxy-from-environment',
    description: 'reach etcd through the proxy of HTTPS_PROXY or HTTP_PROXY, except for the hosts in NO_PROXY',
  },
  { name: 'lockPrefix', flags: '--lock-prefix <key>', description: 'parent directory of all locks (default: /_locks)' },
];

/** Adds the connection options to the program, for use before the command name. */
export function addConnectionOptions(program: Command): void {
  program.optionsGroup(CONNECTION_OPTIONS);
  for (const { flags, description, env } of connectionSettings)
    program.addOption(new Option(flags, env ? `${description} (env: ${env.join(', ')})` : description));
}

/** Adds the connection options to a command, for use after its name. Flags that the command defines itself are left out. */
export function acceptConnectionOptions(command: Command): void {
  const own = command.options.flatMap(({ short, long }) => [short, long]);
  for (const { name, flags } of connectionSettings) {
    const [, names = '', value = ''] = /^(.*?)( <.*>)?$/.exec(flags) ?? [];
    const free = names.split(', ').filter((flag) => !own.includes(flag));
    const option = new Option(free.join(', ') + value).hideHelp();
    // By default, the name of the option would depend on the flags that are left.
    option.attributeName = () => name;
    command.addOption(option);
  }
}

/** Returns the connection options given before or after the command name. Those after the name take precedence. */
export const connectionOf = (command: Command): ConnectionOptions => ({ ...command.parent?.opts(), ...command.opts() });

/**
 * Returns the client options for these flags and variables.
 * @throws {UsageError} for contradictory options and unreadable files
 */
export function clientOptions(flags: ConnectionOptions, env: Environment = process.env): EtcdClientOptions {
  const given = (name: ValueName): string | undefined => {
    const names = connectionSettings.find((setting) => setting.name === name)?.env ?? [];
    return flags[name] ?? names.map((variable) => env[variable] || undefined).find((value) => value !== undefined);
  };
  const [ca, cert, key] = [given('cacert'), given('cert'), given('key')];
  if (cert !== undefined && key === undefined) throw incomplete(nameOfFile(cert, '--cert'));
  if (key !== undefined && cert === undefined) throw incomplete(nameOfFile(key, '--key'));
  const { lockPrefix, tlsServerName: serverName, keyPassphraseFile } = flags;
  const { followMembers, proxyFromEnvironment } = flags;
  if (keyPassphraseFile !== undefined && key === undefined)
    throw new UsageError('--key-passphrase-file requires --key');
  const passphrase = keyPassphraseFile && readFirstLine(keyPassphraseFile, '--key-passphrase-file', 'passphrase');
  return {
    ...defined({ ...members(flags, given), api: given('api') as EtcdApi | undefined, lockPrefix }),
    ...defined({ serverName, passphrase, followMembers, proxyFromEnvironment }),
    ...credentials(given('user'), flags, env),
    ...(ca === undefined ? {} : { caFile: pemFile(ca, '--cacert') }),
    ...(cert === undefined || key === undefined
      ? {}
      : { certFile: pemFile(cert, '--cert'), keyFile: pemFile(key, '--key') }),
  };
}

/** Client options with the API of one store. */
export type StoreOptions = EtcdClientOptions & { readonly api?: StoreApi };

/**
 * Returns the client options for a command that reads or changes queues: those of one store.
 * @throws {UsageError} with api "both", and as {@link clientOptions} does
 */
export function storeOptions(flags: ConnectionOptions): StoreOptions {
  const { api, ...options } = clientOptions(flags);
  if (api === 'both')
    throw new UsageError(
      'this command does not support --api both, because each lock then has two queues: use --api v2 or --api v3',
    );
  return { ...options, ...(api === undefined ? {} : { api }) };
}

/** Returns these options with the present password, for work that takes moments or is done by other processes. */
export async function withFixedPassword<T extends EtcdClientOptions>({ password, ...options }: T): Promise<T> {
  const fixed = typeof password === 'function' ? await password() : password;
  return { ...options, ...(fixed === undefined ? {} : { password: fixed }) } as T;
}

const incomplete = (file: string) => new UsageError(`--cert and --key must be used together, got only ${file}`);

/** Returns the endpoints or the SRV domain. Flags take precedence over variables, and endpoints over an SRV domain. */
function members(
  flags: ConnectionOptions,
  given: (name: ValueName) => string | undefined,
): { endpoints?: string | undefined; srvDomain?: string | undefined; srvName?: string | undefined } {
  if (flags.endpoints !== undefined && flags.discoverySrv !== undefined)
    throw new UsageError('--endpoints and --discovery-srv cannot be used together');
  const endpoints = flags.discoverySrv === undefined ? given('endpoints') : undefined;
  const srvDomain = endpoints === undefined ? given('discoverySrv') : undefined;
  if (srvDomain !== undefined) return { srvDomain, srvName: given('discoverySrvName') };
  if (flags.discoverySrvName !== undefined) throw new UsageError('--discovery-srv-name requires --discovery-srv');
  return { endpoints };
}

function credentials(user: string | undefined, flags: ConnectionOptions, env: Environment): EtcdClientOptions {
  const { password, passwordFile } = flags;
  if (password !== undefined && passwordFile !== undefined)
    throw new UsageError('--password and --password-file cannot be used together');
  const fromFile =
    passwordFile === undefined ? undefined : () => readFirstLine(passwordFile, '--password-file', 'password');
  fromFile?.();
  const byFlag = fromFile ?? password;
  if (user === undefined) {
    if (byFlag !== undefined) throw new UsageError('a password requires --user');
    return {};
  }
  const [, username = user, attached] = /^([^:]*):(.*)$/s.exec(user) ?? [];
  if (byFlag !== undefined && attached !== undefined && flags.user !== undefined)
    throw new UsageError(
      `two passwords for ${showUser(username)}: one in --user, one from --password or --password-file`,
    );
  const found = byFlag ?? attached ?? (env['ETCDCTL_PASSWORD'] || undefined);
  if (found === undefined)
    throw new UsageError(`no password for user ${showUser(username)}: set ETCDCTL_PASSWORD or use --password-file`);
  return { username, password: found };
}

function defined<T extends object>(values: T): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}
