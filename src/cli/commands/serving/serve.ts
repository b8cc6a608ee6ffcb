import { Command, Option } from 'commander';
import { checkEmbeddedOptions, EmbeddedEtcd, type EmbeddedEtcdOptions } from '../../../server/embedded.ts';
import { RELEASES } from '../../../server/version.ts';
import { number, octal } from '../../arguments.ts';
import { checked, ExitCode } from '../../exit-codes.ts';
import { explain } from '../../help.ts';
import { outcome } from '../../session.ts';
import { aborted, untilSignalled } from '../../signals.ts';
import { print, printJson, remark } from '../../streams.ts';

interface Flags extends Pick<EmbeddedEtcdOptions, 'port' | 'host' | 'socket' | 'socketMode'> {
  readonly etcdVersion: NonNullable<EmbeddedEtcdOptions['version']>;
  readonly apis?: readonly string[];
  readonly json?: boolean;
}

/** `etcd-v2-lock serve`: runs the embedded server until a signal ends it. */
export function serveCommand(): Command {
  const command = new Command('serve')
    .description(
      'Run an in-memory etcd server, with the v2 API and the JSON gateway of v3, for tests and trials. Prints its URL. Stop it with ^C or SIGTERM; all data is lost then.',
    )
    .option('--port <number>', 'TCP port to listen on; 0 for any free port (default: 2379)', number)
    .option(
      '--host <address>',
      'address or name to listen on; requests for host names other than this and localhost get status 403 (default: 127.0.0.1)',
    )
    .option('--socket <path>', 'Unix socket to listen on, instead of a port')
    .option('--socket-mode <mode>', 'permissions of the Unix socket, such as 660 (default: by the umask)', octal)
    .option('--apis <list>', 'APIs to serve: v2, v3, or v2,v3 (the default; v3 with --etcd-version 3.6)', list)
    .addOption(
      new Option('--etcd-version <version>', 'version of etcd whose answers the server gives')
        .choices(Object.keys(RELEASES))
        .default('3.4'),
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

const list = (text: string): string[] => text.split(',');

function serve({ etcdVersion: version, apis, json, ...where }: Flags): Promise<number> {
  return untilSignalled(async (signal) => {
    const chosen = apis as EmbeddedEtcdOptions['apis'];
    const port = where.port ?? (where.socket === undefined ? 2379 : undefined);
    const server = await listen({ ...where, port, version, ...(chosen && { apis: chosen }) });
    if (json) printJson({ url: server.url, pid: process.pid });
    else print(server.url);
    remark(`to stop the server, press ^C or run: kill ${process.pid}`);
    await aborted(signal);
    await server.stop();
    return ExitCode.ok;
  });
}

async function listen(options: EmbeddedEtcdOptions): Promise<EmbeddedEtcd> {
  const { host, port, socket } = checked(() => checkEmbeddedOptions(options));
  try {
    return await EmbeddedEtcd.start(options);
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    if (socket !== undefined) throw new Error(`cannot listen on ${socket}: ${error.message}. Try another --socket.`);
    throw new Error(`cannot listen on ${host} port ${port}: ${error.message}. Try another --port or --host.`);
  }
}
