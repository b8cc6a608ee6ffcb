import { Command } from 'commander';
import { checkEmbeddedOptions, EmbeddedEtcd } from '../../server/embedded.ts';
import { number } from '../arguments.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { explain } from '../help.ts';
import { outcome } from '../session.ts';
import { aborted, untilSignalled } from '../signals.ts';
import { print } from '../streams.ts';

/** `etcd-v2-lock serve`: runs the embedded server until a signal ends it. */
export function serveCommand(): Command {
  const command = new Command('serve')
    .description('Run an in-memory etcd v2 server for tests and trials. Prints its URL. All data is lost on exit.')
    .option('--port <number>', 'TCP port to listen on; 0 for any free port', number, 2379)
    .option(
      '--host <address>',
      'address or name to listen on; requests for host names other than this and localhost get status 403',
      '127.0.0.1',
    )
    .action(async ({ port, host }: { port: number; host: string }) => {
      process.exitCode = await outcome(() => serve(port, host));
    });
  return explain(command, {
    endings: ['signalled'],
    examples: [['etcd-v2-lock serve --port 0', 'listen on any free port, shown in the printed URL']],
  });
}

function serve(port: number, host: string): Promise<number> {
  return untilSignalled(async (signal) => {
    const server = await listen(port, host);
    print(server.url);
    await aborted(signal);
    await server.stop();
    return ExitCode.ok;
  });
}

async function listen(port: number, host: string): Promise<EmbeddedEtcd> {
  checked(() => checkEmbeddedOptions({ port, host }));
  try {
    return await EmbeddedEtcd.start({ port, host });
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new Error(`cannot listen on ${host} port ${port}: ${error.message}. Try another --port or --host.`);
  }
}
