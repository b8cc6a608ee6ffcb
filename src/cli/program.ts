import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { completionCommand } from './commands/completion.ts';
import { demoCommand } from './commands/demo.ts';
import { doctorCommand } from './commands/doctor.ts';
import { electCommand } from './commands/elect.ts';
import { inspectCommand } from './commands/inspect.ts';
import { lsCommand } from './commands/ls.ts';
import { pruneCommand } from './commands/prune.ts';
import { releaseCommand } from './commands/release.ts';
import { runCommand } from './commands/run.ts';
import { bridgeCommand } from './commands/serving/bridge.ts';
import { serveCommand } from './commands/serving/serve.ts';
import { uiCommand } from './commands/serving/ui.ts';
import { ticksCommand } from './commands/ticks.ts';
import { topCommand } from './commands/top.ts';
import { watchCommand } from './commands/watch.ts';
import { grammarOf } from './completion/grammar.ts';
import { LINE_TO_COMPLETE, printNames } from './completion/names.ts';
import { acceptConnectionOptions, addConnectionOptions } from './connection.ts';
import { ExitCode, type ExitReason, exitReasons } from './exit-codes.ts';
import { acquireCommand } from './handles/acquire.ts';
import { renewCommand } from './handles/renew.ts';
import { CONNECTING, explain, formatHelp, helpCommand } from './help.ts';
import { longFlags, refusal, refuseFlags } from './refusals.ts';
import { outcome } from './session.ts';
import { outputWidth, printText } from './streams.ts';
import { wrapped } from './wrap.ts';

/** Width of option lists off a terminal. */
const WITHOUT_TERMINAL = 80;

/** The commands that connect to etcd. */
const CONNECTED = [
  runCommand,
  electCommand,
  acquireCommand,
  renewCommand,
  releaseCommand,
  lsCommand,
  inspectCommand,
  watchCommand,
  topCommand,
  uiCommand,
  ticksCommand,
  pruneCommand,
  doctorCommand,
  bridgeCommand,
  demoCommand,
];

/** Returns the program with all commands. `docs/cli.md` is generated from their help. */
export function program(): Command {
  const all = new Command('etcd-v2-lock')
    .description('Run commands under distributed locks on etcd v2 or v3, and inspect and manage their queues.')
    .version(versionOf(), '-V, --version', 'show the version')
    .helpCommand(false)
    .helpOption('-h, --help', 'show help')
    .enablePositionalOptions()
    .configureHelp({ formatHelp })
    .configureOutput({
      writeOut: (text) => printText(wrapped(text, outputWidth())),
      getOutHelpWidth: () => (outputWidth() === Number.POSITIVE_INFINITY ? WITHOUT_TERMINAL : outputWidth()),
      outputError: (text, write) => write(refusal(text, longFlags(all))),
    })
    .exitOverride();
  addConnectionOptions(all);
  explain(all, { exitReasons: Object.keys(exitReasons) as ExitReason[] });
  for (const make of CONNECTED) {
    const command = make();
    acceptConnectionOptions(command);
    add(all, command).addHelpText('after', CONNECTING);
  }
  add(all, serveCommand());
  add(all, completionCommand(all));
  add(all, helpCommand(all));
  const known = longFlags(all);
  for (const { options } of [all, ...all.commands]) for (const option of options) refuseFlags(option, known);
  return all;
}

function add(all: Command, command: Command): Command {
  all.addCommand(command.copyInheritedSettings(all));
  return command.showHelpAfterError(`usage: ${all.name()} ${command.name()} ${command.usage()}`);
}

/** Runs one command line and sets `process.exitCode`. */
export async function main(argv: readonly string[]): Promise<void> {
  const line = process.env[LINE_TO_COMPLETE];
  if (line !== undefined) return printNames(grammarOf(program()), line);
  try {
    await program().parseAsync(argv);
  } catch (error) {
    // Commander has already printed the message. Requested help is not an error.
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    else process.exitCode = await outcome(() => Promise.reject(error));
  }
}

function versionOf(): string {
  const file = join(__dirname, '../../package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
