import { Command } from 'commander';
import { EmbeddedEtcd } from '../../server/embedded.ts';
import { checkListening } from '../../server/listening.ts';
import { number } from '../arguments.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { explain } from '../help.ts';
import { outcome } from '../session.ts';
import { aborted, untilSignalled } from '../signals.ts';
import { print, printJson, remark } from '../streams.ts';

interface Flags {
  readonly port: number;
  readonly host: string;
  readonly json?: boolean;
}

/** `etcd-v2-lock serve`: runs the embedded server until a signal ends it. */
export function serveCommand(): Command {
  const command = new Command('serve')
    .description(
      'Run an in-memory etcd v2 server for tests and trials. Prints its URL. Stop it with ^C or SIGTERM; all data is lost then.',
    )
    .option('--port <number>', 'TCP port to listen on; 0 for any free port', number, 2379)
    .option(
      '--host <address>',
      'address or name to listen on; requests for host names other than this and localhost get status 403',
      '127.0.0.1',
    )
    .option('--json', 'print JSON: one line with the URL and the process ID')
    .action(async (flags: Flags) => {
      process.exitCode = await outcome(() => serve(flags));
    });
  return explain(command, {
    exitReasons: ['signalled'],
    examples: [
      ['etcd-v2-lock serve --port 0', 'listen on any free port, shown in the printed URL'],
      ['etcd-v2-lock serve --port 0 --json', 'print {"url":"http://127.0.0.1:…","pid":…}'],
    ],
  });
}

function serve({ port, host, json }: Flags): Promise<number> {
  return untilSignalled(async (signal) => {
    const server = await listen(port, host);
    if (json) printJson({ url: server.url, pid: process.pid });
    else print(server.url);
    remark(`to stop the server, press ^C or run: kill ${process.pid}`);
    await aborted(signal);
    await server.stop();
    return ExitCode.ok;
  });
}

async function listen(port: number, host: string): Promise<EmbeddedEtcd> {
  checked(() => checkListening({ port, host }));
  try {
    return await EmbeddedEtcd.start({ port, host });
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new Error(`cannot listen on ${host} port ${port}: ${error.message}. Try another --port or --host.`);
  }
}
