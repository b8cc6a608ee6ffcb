import { type Command, InvalidArgumentError, type Option } from 'commander';
import { printable } from '../base/printable.ts';
import { isFlag, mayBePassword, NOT_SHOWN, showFlag } from './secrets.ts';

/** An error text of commander: the message, and a suggestion if there is one. */
const ERROR = /^error: ([\s\S]*?)((?:\n\(Did you mean [\w ,-]+\?\))?)\n$/;

/** Returns all long flags of a program and its commands. */
export const longFlags = (program: Command): ReadonlySet<string> =>
  new Set([program, ...program.commands].flatMap(({ options }) => options.flatMap(({ long }) => long ?? [])));

/**
 * Turns an error text of commander into the text to print: with the program name, without unprintable characters, and without
 * values that may be a password.
 * @param text the text that commander would print
 * @param known all long flags
 */
export function refusal(text: string, known: ReadonlySet<string>): string {
  const [, message = text, suggestion = ''] = ERROR.exec(text) ?? [];
  const [, command] = /^unknown command '([\s\S]*)'$/.exec(message) ?? [];
  // The suggestion is left out, because it resembles the operand.
  if (command !== undefined && mayBePassword(command, process.argv))
    return `etcd-v2-lock: unknown command ${NOT_SHOWN}\n`;
  return `etcd-v2-lock: ${printable(withoutValues(message, known, suggestion !== ''))}${suggestion}\n`;
}

function withoutValues(message: string, known: ReadonlySet<string>, similar: boolean): string {
  const [, flag] = /^unknown option '([\s\S]*)'$/.exec(message) ?? [];
  if (flag !== undefined) return `unknown option '${showFlag(flag, known, similar)}'`;
  // The first sentence, from commander, shows the value. The second one is from our parser, which hides passwords.
  const [, option, why] = /^(option '[^']*') argument '[\s\S]*' is invalid\. ([\s\S]*)$/.exec(message) ?? [];
  return option === undefined ? message : `invalid value for ${option}. ${why}`;
}

/** Makes an option reject a flag as its value. The user forgot the value, and the flag may contain a password. */
export function refuseFlags(option: Option, known: ReadonlySet<string>): void {
  const { parseArg } = option;
  if (!option.required) return;
  option.argParser((value: string, previous: unknown) => {
    // A password may look like a flag, so only known flags are rejected.
    const forgotten = option.attributeName() === 'password' ? known.has(value) : isFlag(value, known);
    if (forgotten)
      throw new InvalidArgumentError(
        `The option needs a value, but is followed by the option ${showFlag(value, known)}.`,
      );
    return parseArg ? parseArg(value, previous) : value;
  });
}
