import { type Command, Option } from 'commander';
import { show } from '../checks.ts';
import { showUser } from '../http/options.ts';
import type { EtcdClientOptions } from '../v2/options.ts';
import { UsageError } from './exit-codes.ts';
import { nameOfFile, readFirstLine, readPem } from './files.ts';

/** Where etcd is and who we are, as the command line has it. Flags win over the environment. */
export interface ConnectionOptions {
  readonly endpoints?: string;
  readonly discoverySrv?: string;
  readonly cacert?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly user?: string;
  readonly password?: string;
  readonly passwordFile?: string;
  readonly lockPrefix?: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

interface Setting {
  readonly name: keyof ConnectionOptions;
  /** etcdctl's, of API 3 and of API 2 where they differ; of two long flags the last names the option. */
  readonly flags: string;
  readonly description: string;
  /** The first of these that is set counts where the flag is absent. */
  readonly env?: readonly string[];
}

/** All that tells which etcd, and as whom; the manual tells of them, too. */
export const connectionSettings: readonly Setting[] = [
  {
    name: 'endpoints',
    flags: '--endpoints <urls>',
    description: 'members of the cluster, separated by commas (default: http://127.0.0.1:2379)',
    env: ['ETCD_ENDPOINTS', 'ETCDCTL_ENDPOINTS'],
  },
  {
    name: 'discoverySrv',
    flags: '-D, --discovery-srv <domain>',
    description: 'look the members up as SRV records of _etcd._tcp.<domain> instead',
    env: ['ETCDCTL_DISCOVERY_SRV'],
  },
  {
    name: 'cacert',
    flags: '--ca-file, --cacert <file>',
    description: 'PEM file of the authorities to trust',
    env: ['ETCDCTL_CACERT', 'ETCDCTL_CA_FILE'],
  },
  {
    name: 'cert',
    flags: '--cert-file, --cert <file>',
    description: 'PEM file of the client certificate',
    env: ['ETCDCTL_CERT', 'ETCDCTL_CERT_FILE'],
  },
  {
    name: 'key',
    flags: '--key-file, --key <file>',
    description: 'PEM file of its private key',
    env: ['ETCDCTL_KEY', 'ETCDCTL_KEY_FILE'],
  },
  {
    name: 'user',
    flags: '--username, --user <name[:password]>',
    description: 'user of etcd; better without the password, which anyone on the machine could read',
    env: ['ETCDCTL_USER', 'ETCDCTL_USERNAME'],
  },
  { name: 'passwordFile', flags: '--password-file <file>', description: 'file whose first line is the password' },
  {
    name: 'password',
    flags: '--password <text>',
    description: 'the password itself; better in a file or in the environment',
    env: ['ETCDCTL_PASSWORD'],
  },
  { name: 'lockPrefix', flags: '--lock-prefix <key>', description: 'directory of all locks (default: /_locks)' },
];

/** Adds the flags that every command understands, for before its name. */
export function addConnectionOptions(program: Command): void {
  program.optionsGroup('Options for every command:');
  for (const { flags, description, env } of connectionSettings)
    program.addOption(new Option(flags, env ? `${description} (env: ${env.join(', ')})` : description));
}

/** Has a command understand them behind its name, too, except for a flag that it has itself. */
export function acceptConnectionOptions(command: Command): void {
  const own = command.options.flatMap(({ short, long }) => [short, long]);
  for (const { name, flags } of connectionSettings) {
    const [, names = '', value] = /^(.*) (<.*>)$/.exec(flags) ?? [];
    const free = names.split(', ').filter((flag) => !own.includes(flag));
    const option = new Option(`${free.join(', ')} ${value}`).hideHelp();
    // Whichever flag is left.
    option.attributeName = () => name;
    command.addOption(option);
  }
}

/** What the flags before and behind a command's name say; the latter count. */
export const connectionOf = (command: Command): ConnectionOptions => ({ ...command.parent?.opts(), ...command.opts() });

/**
 * What a client is made with.
 * @throws {UsageError} for what contradicts itself, and for a file that cannot be read
 */
export function clientOptions(flags: ConnectionOptions, env: Environment = process.env): EtcdClientOptions {
  const given = (name: keyof ConnectionOptions): string | undefined => {
    const names = connectionSettings.find((setting) => setting.name === name)?.env ?? [];
    return flags[name] ?? names.map((variable) => env[variable] || undefined).find((value) => value !== undefined);
  };
  const { endpoints, srvDomain } = members(flags, given);
  const [ca, cert, key] = [given('cacert'), given('cert'), given('key')];
  if (cert !== undefined && key === undefined) throw alone(nameOfFile(cert, '--cert'));
  if (key !== undefined && cert === undefined) throw alone(nameOfFile(key, '--key'));
  const scheme = [ca, cert, key].some((file) => file !== undefined) ? 'https' : 'http';
  return {
    ...defined({ srvDomain, lockPrefix: flags.lockPrefix }),
    ...(endpoints === undefined ? {} : { endpoints: urlsOf(endpoints, scheme) }),
    ...credentials(given('user'), flags, env),
    ...(ca === undefined ? {} : { ca: readPem(ca, '--cacert') }),
    ...(cert === undefined || key === undefined ? {} : { cert: readPem(cert, '--cert'), key: readPem(key, '--key') }),
  };
}

const alone = (file: string) => new UsageError(`--cert and --key go together, got only ${file}`);

/** A flag of either kind outdoes variables of both. */
function members(
  flags: ConnectionOptions,
  given: (name: keyof ConnectionOptions) => string | undefined,
): { endpoints?: string | undefined; srvDomain?: string | undefined } {
  if (flags.endpoints !== undefined && flags.discoverySrv !== undefined)
    throw new UsageError('--endpoints and --discovery-srv exclude each other');
  if (flags.endpoints !== undefined) return { endpoints: flags.endpoints };
  const srvDomain = given('discoverySrv');
  return srvDomain === undefined ? { endpoints: given('endpoints') } : { srvDomain };
}

/** etcdctl takes members without a scheme, too. */
function urlsOf(list: string, scheme: string): string[] {
  // Checked before the list is split: a password may contain a comma.
  if (list.includes('@'))
    throw new UsageError(`endpoint must carry no credentials (use --user), got ${show(list.replace(/^.*@/s, '…@'))}`);
  const urls = list.split(',').map((url) => url.trim());
  return urls.filter((url) => url !== '').map((url) => (url.includes('://') ? url : `${scheme}://${url}`));
}

function credentials(user: string | undefined, flags: ConnectionOptions, env: Environment): EtcdClientOptions {
  const { password, passwordFile } = flags;
  if (password !== undefined && passwordFile !== undefined)
    throw new UsageError('--password and --password-file exclude each other');
  const byFlag = passwordFile === undefined ? password : readFirstLine(passwordFile, '--password-file');
  if (user === undefined) {
    if (byFlag !== undefined) throw new UsageError('a password goes with --user');
    return {};
  }
  const [, username = user, behind] = /^([^:]*):(.*)$/s.exec(user) ?? [];
  if (byFlag !== undefined && behind !== undefined && flags.user !== undefined)
    throw new UsageError(`two passwords for ${showUser(username)}: one in --user, one by --password or its file`);
  const found = byFlag ?? behind ?? (env['ETCDCTL_PASSWORD'] || undefined);
  if (found === undefined)
    throw new UsageError(`user ${showUser(username)} needs a password: ETCDCTL_PASSWORD or --password-file`);
  return { username, password: found };
}

function defined<T extends object>(values: T): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}
