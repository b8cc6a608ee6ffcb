import { Command } from 'commander';
import { EmbeddedEtcd } from '../../server/embedded.ts';
import { number } from '../arguments.ts';
import { ExitCode } from '../exit-codes.ts';
import { outcome } from '../session.ts';
import { aborted, untilSignalled } from '../signals.ts';
import { print } from '../streams.ts';

/** `etcd-v2-lock serve`: the embedded server, until a signal ends it. */
export function serveCommand(): Command {
  return new Command('serve')
    .description('Serve an etcd v2 in memory, for tests and try-outs. It prints its URL; all is gone when it ends.')
    .option('--port <number>', 'TCP port to listen on, 0 for any free one', number, 2379)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .action(async ({ port, host }: { port: number; host: string }) => {
      process.exitCode = await outcome(() => serve(port, host));
    });
}

function serve(port: number, host: string): Promise<number> {
  return untilSignalled(async (signal) => {
    const server = await EmbeddedEtcd.start({ port, host });
    print(server.url);
    await aborted(signal);
    await server.stop();
    return ExitCode.ok;
  });
}
