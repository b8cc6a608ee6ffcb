import { Command } from 'commander';
import { Bridge, type BridgeOptions } from '../../server/bridge/bridge.ts';
import { checkListening } from '../../server/listening.ts';
import { clientOptions, connectionOf } from '../connection.ts';
import { checked, ExitCode, UsageError } from '../exit-codes.ts';
import { explain } from '../help.ts';
import { outcome } from '../session.ts';
import { aborted, untilSignalled } from '../signals.ts';
import { print, printJson, remark } from '../streams.ts';

interface Flags {
  readonly listen: string;
  readonly advertise?: string;
  readonly json?: boolean;
}

/** `etcd-v2-lock bridge`: serves locks on etcd v3 to clients of etcd v2 until a signal ends it. */
export function bridgeCommand(): Command {
  const command = new Command('bridge')
    .description(
      'Serve locks on etcd v3 to clients of etcd v2, such as python-etcd. They share queues with clients of etcd v3. Prints its URL.',
    )
    .option(
      '--listen <address:port>',
      'where to listen; port 0 for any free port. The bridge asks for no passwords',
      '127.0.0.1:4001',
    )
    .option('--advertise <urls>', 'URLs of all bridges, for clients that ask for the members; separated by commas')
    .option('--json', 'print JSON: one line with the URL and the process ID')
    .action(async (flags: Flags, self: Command) => {
      process.exitCode = await outcome(() => serve(optionsOf(flags, self), flags));
    });
  return explain(command, {
    endings: ['signalled'],
    examples: [
      [
        'etcd-v2-lock --endpoints http://etcd:2379 bridge',
        'on each host with python-etcd, which connects to 127.0.0.1:4001',
      ],
      [
        'etcd-v2-lock bridge --listen 0.0.0.0:4001 --advertise http://b1:4001,http://b2:4001',
        'one of two bridges that all hosts use',
      ],
    ],
  });
}

/** @throws {UsageError} for an invalid option */
function optionsOf({ listen, advertise }: Flags, command: Command): BridgeOptions {
  const flags = connectionOf(command);
  if (flags.api === 'v2') throw new UsageError('a bridge is to etcd v3: --api v2 cannot be used with it');
  const { api: _, ...cluster } = clientOptions(flags);
  const [, host = '', port = ''] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(listen) ?? [];
  if (host === '') throw new UsageError(`--listen must be an address and a port, got "${listen}"`);
  const listening = { host, port: Number(port) };
  checked(() => checkListening(listening));
  return { ...cluster, ...listening, ...(advertise === undefined ? {} : { advertise: advertise.split(',') }) };
}

function serve(options: BridgeOptions, { json, listen }: Flags): Promise<number> {
  return untilSignalled(async (signal) => {
    const bridge = await start(options, listen);
    if (json) printJson({ url: bridge.url, pid: process.pid });
    else print(bridge.url);
    remark(`to stop the bridge, press ^C or run: kill ${process.pid}`);
    await aborted(signal);
    await bridge.stop();
    return ExitCode.ok;
  });
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
