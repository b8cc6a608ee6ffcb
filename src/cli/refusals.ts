import { type Command, InvalidArgumentError, type Option } from 'commander';
import { printable } from '../printable.ts';
import { isFlag, mayBePassword, NOT_SHOWN, showFlag } from './secrets.ts';

/** An error of commander: its message, and its suggestion where it has one. */
const ERROR = /^error: ([\s\S]*?)((?:\n\(Did you mean [\w ,-]+\?\))?)\n$/;

/** All long flags of a program and its commands. */
export const longFlags = (program: Command): ReadonlySet<string> =>
  new Set([program, ...program.commands].flatMap(({ options }) => options.flatMap(({ long }) => long ?? [])));

/**
 * Returns an error of commander for stderr: in our name, printable, and without a value that may be a password.
 * @param text what commander would print
 */
export function refusal(text: string, known: ReadonlySet<string>): string {
  const [, message = text, suggestion = ''] = ERROR.exec(text) ?? [];
  const [, command] = /^unknown command '([\s\S]*)'$/.exec(message) ?? [];
  // Without the suggestion, which resembles the operand.
  if (command !== undefined && mayBePassword(command, process.argv))
    return `etcd-v2-lock: unknown command ${NOT_SHOWN}\n`;
  return `etcd-v2-lock: ${printable(withoutValues(message, known, suggestion !== ''))}${suggestion}\n`;
}

function withoutValues(message: string, known: ReadonlySet<string>, similar: boolean): string {
  const [, flag] = /^unknown option '([\s\S]*)'$/.exec(message) ?? [];
  if (flag !== undefined) return `unknown option '${showFlag(flag, known, similar)}'`;
  // The second sentence is ours. It shows the value unless that may be a password.
  const [, option, why] = /^(option '[^']*') argument '[\s\S]*' is invalid\. ([\s\S]*)$/.exec(message) ?? [];
  return option === undefined ? message : `invalid value for ${option}. ${why}`;
}

/** Makes an option refuse a flag as its value: the value is missing, and the flag may contain a password. */
export function refuseFlags(option: Option, known: ReadonlySet<string>): void {
  const { parseArg } = option;
  if (!option.required) return;
  option.argParser((value: string, previous: unknown) => {
    // A password may look like anything.
    const forgotten = option.attributeName() === 'password' ? known.has(value) : isFlag(value, known);
    if (forgotten)
      throw new InvalidArgumentError(`The option needs a value, but the flag ${showFlag(value, known)} follows it.`);
    return parseArg ? parseArg(value, previous) : value;
  });
}
