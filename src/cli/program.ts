import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { doctorCommand } from './commands/doctor.ts';
import { inspectCommand } from './commands/inspect.ts';
import { lsCommand } from './commands/ls.ts';
import { pruneCommand } from './commands/prune.ts';
import { releaseCommand } from './commands/release.ts';
import { runCommand } from './commands/run.ts';
import { serveCommand } from './commands/serve.ts';
import { watchCommand } from './commands/watch.ts';
import { acceptConnectionOptions, addConnectionOptions } from './connection.ts';
import { type Ending, ExitCode, endings } from './exit-codes.ts';
import { explain } from './help.ts';
import { longFlags, refusal, refuseFlags } from './refusals.ts';
import { outcome } from './session.ts';
import { endWithReader } from './streams.ts';

/** The end of every command's help. */
export const CONNECTING =
  '\nWhich etcd, and as whom: see the options that every command has, by `etcd-v2-lock --help`.';

/** The commands that ask etcd. */
const ASKING = [runCommand, lsCommand, inspectCommand, watchCommand, releaseCommand, pruneCommand, doctorCommand];

/** All commands, ready to parse; `docs/cli.md` is made from their help. */
export function program(): Command {
  const all = new Command('etcd-v2-lock')
    .description('Locks on etcd v2, in the same queue as python-etcd: run jobs under them, and see who holds what.')
    .version(versionOf(), '-V, --version')
    .helpCommand('help [command]', 'tell more of a command')
    .helpOption('-h, --help', 'tell what there is')
    .enablePositionalOptions()
    .configureOutput({ outputError: (text, write) => write(refusal(text, longFlags(all))) })
    .exitOverride();
  addConnectionOptions(all);
  explain(all, { endings: Object.keys(endings) as Ending[] });
  for (const make of ASKING) {
    const command = make();
    acceptConnectionOptions(command);
    add(all, command).addHelpText('after', CONNECTING);
  }
  add(all, serveCommand());
  const known = longFlags(all);
  for (const { options } of [all, ...all.commands]) for (const option of options) refuseFlags(option, known);
  return all;
}

function add(all: Command, command: Command): Command {
  all.addCommand(command.copyInheritedSettings(all));
  return command.showHelpAfterError(`usage: ${all.name()} ${command.name()} ${command.usage()}`);
}

/** Runs one command line; the exit code is in `process.exitCode`. */
export async function main(argv: readonly string[]): Promise<void> {
  endWithReader();
  try {
    await program().parseAsync(argv);
  } catch (error) {
    // Commander has said it already. Help that was asked for is no mistake.
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    else process.exitCode = await outcome(() => Promise.reject(error));
  }
}

function versionOf(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
