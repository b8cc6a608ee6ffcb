import type { Command, Option } from 'commander';
import { CONNECTION_TOPIC } from '../help.ts';

/** What the value of an option may be. */
export type Value = 'none' | 'file' | 'text';

export interface OptionWords {
  /** Its name in commander. */
  readonly name: string;
  /** `-D`, `--discovery-srv`, and the other spellings. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly value: Value;
}

export interface CommandWords {
  readonly name: string;
  readonly description: string;
  readonly options: readonly OptionWords[];
  /** The possible operands; empty if they are free text. */
  readonly operands: readonly string[];
  /** Whether the first operand is the name of a lock, or its beginning. */
  readonly takesLock: boolean;
  /** Whether a command to run follows the first operand. */
  readonly runs: boolean;
}

/** The command line, as the completion scripts need it. */
export interface Grammar {
  readonly options: readonly OptionWords[];
  readonly commands: readonly CommandWords[];
}

/** Names of operands that are names of locks, in the usage of the commands. */
const LOCK_OPERANDS = new Set(['name', 'prefix']);

/** Returns the grammar of a program from its commander definition. */
export function grammarOf(program: Command): Grammar {
  const names = program.commands.map((command) => command.name());
  const described = new Map(program.options.map((option) => [option.attributeName(), option.description]));
  const commands = program.commands.map((command): CommandWords => {
    const [operand] = command.registeredArguments;
    return {
      name: command.name(),
      // The first sentence.
      description: command.description().split('. ', 1)[0]?.replace(/\.$/, '') ?? '',
      // The connection options have their descriptions at the program only.
      options: optionsOf(command).map((option) => wordsOf(option, described.get(option.attributeName()) ?? '')),
      operands: operand?.argChoices ?? (command.name() === 'help' ? [...names, CONNECTION_TOPIC] : []),
      takesLock: operand !== undefined && LOCK_OPERANDS.has(operand.name()),
      runs: command.registeredArguments.some(({ variadic }) => variadic),
    };
  });
  return { options: optionsOf(program).map((option) => wordsOf(option)), commands };
}

/** Returns all options that a command accepts, hidden ones and `--help` too. */
function optionsOf(command: Command): Option[] {
  const [help] = command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long }) => long === '--help');
  return help ? [...command.options, help] : [...command.options];
}

function wordsOf(option: Option, otherwise = ''): OptionWords {
  const { flags, description, required } = option;
  const file = flags.endsWith('<file>');
  return {
    name: option.attributeName(),
    flags: flags.split(/,? /).filter((word) => word.startsWith('-')),
    description: description || otherwise,
    value: required ? (file ? 'file' : 'text') : 'none',
  };
}
