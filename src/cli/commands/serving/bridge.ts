import { Command, Option } from 'commander';
import { Bridge } from '../../../server/bridge/bridge.ts';
import type { BridgeOptions } from '../../../server/bridge/options.ts';
import type { BridgeRecord } from '../../../server/bridge/records.ts';
import { checkListening } from '../../../server/listening.ts';
import { number, octal } from '../../arguments.ts';
import { clientOptions, connectionOf } from '../../connection.ts';
import { checked, ExitCode, UsageError } from '../../exit-codes.ts';
import { explain } from '../../help.ts';
import { outcome } from '../../session.ts';
import { aborted, ENDING, untilSignalled } from '../../signals.ts';
import { logJson, print, printJson, remark } from '../../streams.ts';
import { addressOf, addTlsFlags, type TlsFlags, tlsOf } from './listening.ts';

interface Flags extends TlsFlags {
  readonly listen: string;
  readonly socketMode?: number;
  readonly advertise?: string;
  readonly maxConnections?: number;
  readonly maxPolls?: number;
  readonly metrics?: true;
  readonly log?: 'changes' | 'requests';
  readonly json?: boolean;
}

const ABOUT = `
Default here: --api v3. The only other value is --api both, for a move from v2 to v3.`;

/** `etcd-v2-lock bridge`: serves locks on etcd v3 to clients of etcd v2 until a signal ends it. */
export function bridgeCommand(): Command {
  const command = new Command('bridge')
    .description(
      'Serve locks on etcd v3 to clients of etcd v2, such as python-etcd. These clients share queues with clients of etcd v3. Prints the URL of the bridge.',
    )
    .option(
      '--listen <address:port>',
      'where to listen; port 0 for any free port. Or a Unix socket, such as unix:///run/locks.sock',
      '127.0.0.1:4001',
    )
    .option('--socket-mode <mode>', 'permissions of the Unix socket, such as 660 (default: by the umask)', octal)
    .option(
      '--advertise <urls>',
      'comma-separated URLs of all bridges, reported to clients as the members of the cluster',
    );
  addTlsFlags(command, 'bridge')
    .option(
      '--max-connections <number>',
      'maximum number of client connections; a further one replaces an idle one, or is closed (default: 20000)',
      number,
    )
    .option(
      '--max-polls <number>',
      'maximum number of open long polls; further polls get status 503 after one second (default: 10000)',
      number,
    )
    .option('--metrics', 'serve /metrics, in the text format of Prometheus')
    .addOption(
      new Option(
        '--log <what>',
        'print JSON lines to stderr. "changes": the bridge starts or stops, or etcd becomes unreachable or reachable again. "requests": also each request',
      ).choices(['changes', 'requests']),
    )
    .option('--json', 'print JSON: one line with the URL and the process ID')
    .addHelpText('after', ABOUT)
    .action(async (flags: Flags, self: Command) => {
      process.exitCode = await outcome(() => serve(optionsOf(flags, self), flags));
    });
  return explain(command, {
    exitReasons: ['unreachable', 'signalled'],
    meanings: {
      unreachable: 'etcd does not have the API that the bridge needs; if etcd is down, the bridge waits for it',
    },
    examples: [
      [
        'etcd-v2-lock --endpoints http://etcd:2379 bridge',
        'on each host with python-etcd, which connects to 127.0.0.1:4001',
      ],
      [
        'etcd-v2-lock bridge --listen 0.0.0.0:4001 --advertise http://b1:4001,http://b2:4001',
        'one of two bridges that all hosts use',
      ],
      ['etcd-v2-lock bridge --api both', 'while you move from v2 to v3: clients hold their locks in both stores'],
    ],
  });
}

/** @throws {UsageError} for an invalid option */
function optionsOf(flags: Flags, command: Command): BridgeOptions {
  const { listen, advertise, maxConnections, maxPolls, metrics, log } = flags;
  const connection = connectionOf(command);
  const { api = 'v3', ...cluster } = clientOptions(connection);
  if (api === 'v2') throw new UsageError('bridge needs etcd v3: use --api v3 (the default) or --api both, got v2');
  const listening = { ...whereTo(listen), ...(flags.socketMode === undefined ? {} : { socketMode: flags.socketMode }) };
  checked(() => checkListening(listening));
  return {
    ...cluster,
    ...listening,
    api,
    tls: tlsOf(flags),
    maxConnections,
    maxPolls,
    metrics,
    log: log && ((record) => isLogged(record, log) && logJson(record)),
    ...(advertise === undefined ? {} : { advertise: advertise.split(',') }),
  };
}

/** @throws {UsageError} unless it is an address with a port, or a Unix socket */
function whereTo(listen: string): Pick<BridgeOptions, 'host' | 'port' | 'socket'> {
  const [, socket] = /^unix:\/\/(.+)$/s.exec(listen) ?? [];
  if (socket !== undefined) return { socket };
  const address = addressOf(listen);
  if (address) return address;
  throw new UsageError(`--listen must be an address and a port, or a Unix socket, got "${listen}"`);
}

const isLogged = ({ event }: BridgeRecord, what: 'changes' | 'requests'): boolean =>
  what === 'requests' || event !== 'request';

/** Whether it has certificates in files. SIGHUP then reads them, and does not end the bridge. */
const usesFiles = ({ tls, caFile, certFile }: BridgeOptions): boolean =>
  [tls, caFile, certFile].some((option) => option !== undefined);

function serve(options: BridgeOptions, { json, listen }: Flags): Promise<number> {
  const ending = usesFiles(options) ? ENDING.filter((signal) => signal !== 'SIGHUP') : ENDING;
  return untilSignalled(async (signal) => {
    const bridge = await start(options, listen);
    const reload = (): void => void bridge.reloadTls();
    // Before anybody knows of the bridge: without a listener, SIGHUP would end it.
    if (usesFiles(options)) process.on('SIGHUP', reload);
    if (json) printJson({ url: bridge.url, pid: process.pid });
    else print(bridge.url);
    remark(`to stop the bridge, press ^C or run: kill ${process.pid}`);
    await aborted(signal);
    await bridge.stop();
    process.off('SIGHUP', reload);
    return ExitCode.ok;
  }, ending);
}

async function start(options: BridgeOptions, listen: string): Promise<Bridge> {
  try {
    return await Bridge.start(options);
  } catch (error) {
    if (error instanceof Error && 'syscall' in error)
      throw new Error(`cannot listen on ${listen}: ${error.message}. Try another --listen.`);
    if (error instanceof RangeError || error instanceof TypeError) throw new UsageError(error.message);
    throw error;
  }
}
