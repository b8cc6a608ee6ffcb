import { Command } from 'commander';
import { codeOf, type ExitReason, exitReasons } from './exit-codes.ts';

export interface Explanation {
  /** Exit codes of this command, in addition to those of every command. */
  readonly exitReasons?: readonly ExitReason[];
  /** What an exit code means for this command, if that differs from its meaning for all commands. */
  readonly meanings?: Partial<Record<ExitReason, string>>;
  /** Command lines, each with its purpose. */
  readonly examples?: readonly (readonly [line: string, purpose: string])[];
}

/** Exit codes of every command that needs an answer from etcd. */
export const ASKING: readonly ExitReason[] = ['unreachable', 'refused'];
/** Exit codes of every command. */
const ALWAYS: readonly ExitReason[] = ['ok', 'usage', 'failed'];

/** Adds exit codes and examples to the help of a command, from which `docs/cli.md` takes them. */
export function explain(
  command: Command,
  { exitReasons: own = [], meanings = {}, examples = [] }: Explanation,
): Command {
  const possible = (Object.keys(exitReasons) as ExitReason[]).filter((reason) => [...ALWAYS, ...own].includes(reason));
  const codes = possible.map((reason) => `  ${codeOf(reason).padEnd(5)}  ${meanings[reason] ?? exitReasons[reason]}`);
  command.addHelpText('after', ['\nExit codes:', ...codes].join('\n'));
  const lines = examples.flatMap(([line, purpose]) => [`  ${line}`, `      ${purpose}`]);
  return lines.length === 0 ? command : command.addHelpText('after', ['\nExamples:', ...lines].join('\n'));
}

/** `etcd-v2-lock help`. Unlike commander's own, it refuses an unknown command. */
export function helpCommand(program: Command): Command {
  return new Command('help')
    .description('Show help for a command.')
    .argument('[command]', 'name of the command')
    .action(async (name?: string) => {
      const command = name === undefined ? program : program.commands.find((found) => found.name() === name);
      if (command) command.help();
      // Commander refuses it, with a suggestion.
      else await program.parseAsync([name ?? ''], { from: 'user' });
    });
}
