import type { Command } from 'commander';
import { codeOf, type Ending, endings } from './exit-codes.ts';

export interface Explanation {
  /** What this command can end with, beside what every command can. */
  readonly endings?: readonly Ending[];
  /** Command lines, each with what it is good for. */
  readonly examples?: readonly (readonly [line: string, purpose: string])[];
}

/** What a command that asks etcd can end with, beside its own. */
export const ASKING: readonly Ending[] = ['unreachable', 'refused'];
const ALWAYS: readonly Ending[] = ['ok', 'usage', 'failed'];

/** Adds to a command's help, and so to the manual, what it ends with and how it is used. */
export function explain(command: Command, { endings: own = [], examples = [] }: Explanation): Command {
  const possible = (Object.keys(endings) as Ending[]).filter((ending) => [...ALWAYS, ...own].includes(ending));
  const codes = possible.map((ending) => `  ${codeOf(ending).padEnd(5)}  ${endings[ending]}`);
  command.addHelpText('after', ['\nExit codes:', ...codes].join('\n'));
  const lines = examples.flatMap(([line, purpose]) => [`  ${line}`, `      ${purpose}`]);
  return lines.length === 0 ? command : command.addHelpText('after', ['\nExamples:', ...lines].join('\n'));
}
