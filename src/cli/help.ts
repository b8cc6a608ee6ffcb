import { Command, Help } from 'commander';
import { CONNECTION_OPTIONS } from './connection.ts';
import { codeOf, type ExitReason, exitReasons } from './exit-codes.ts';
import { print } from './streams.ts';

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

/** The commands whose help is to have all details. */
const detailed = new WeakSet<Command>();

/** Makes the help of a command complete, as "help <command>" and the manual show it. */
export function showDetails(command: Command): Command {
  detailed.add(command);
  return command;
}

/** Adds sections to the complete help of a command. `-h` only names them: whoever looks up an option needs a screen, not a manual. */
export function addDetails(command: Command, text: string): Command {
  const titles = [...text.matchAll(/^(\S.*):$/gm)].map(([, title = '']) => title.toLowerCase());
  const reference = `\nSee "etcd-v2-lock help ${command.name()}" for:\n  ${titles.join(', ')}.`;
  return command.addHelpText('after', () => (detailed.has(command) ? text : reference));
}

/** What `help` explains besides the commands. */
export const CONNECTION_TOPIC = 'connection';

/** Last lines in the help of every command that connects to etcd. */
export const CONNECTING = `\nAll commands that connect to etcd also have --api, --endpoints, --user, --cacert and others: see
"etcd-v2-lock help ${CONNECTION_TOPIC}".`;

/** Shows the part of the program's help that is about the connection options. */
function showConnectionOptions(program: Command): void {
  const help = program.helpInformation();
  const [options = ''] = help.slice(help.indexOf(CONNECTION_OPTIONS)).split('\n\n', 1);
  for (const line of options.split('\n')) print(line);
  print('');
  print('They can be given before or after the command name, and take precedence over environment variables.');
}

/** Returns the help of a command as commander formats it, but with the list of commands before the options. */
export function formatHelp(command: Command, helper: Help): string {
  const sections = Help.prototype.formatHelp.call(helper, command, helper).trimEnd().split('\n\n');
  const commands = sections.filter((section) => section.startsWith('Commands:'));
  const others = sections.filter((section) => !commands.includes(section));
  const at = others.findIndex((section) => section.startsWith('Options:'));
  return `${others.toSpliced(at, 0, ...commands).join('\n\n')}\n`;
}

/** `etcd-v2-lock help`. Unlike commander's own, it refuses an unknown command. */
export function helpCommand(program: Command): Command {
  return new Command('help')
    .description('Show help for a command.')
    .argument('[command]', `name of the command, or "${CONNECTION_TOPIC}"`)
    .action(async (name?: string) => {
      if (name === CONNECTION_TOPIC) return showConnectionOptions(program);
      const command = name === undefined ? program : program.commands.find((found) => found.name() === name);
      if (command) showDetails(command).help();
      // Commander refuses it, with a suggestion.
      await program.parseAsync([name ?? ''], { from: 'user' });
    });
}
