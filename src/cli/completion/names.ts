import { EtcdClient } from '../../client.ts';
import { type ConnectionOptions, storeOptions } from '../connection.ts';
import { print } from '../streams.ts';
import type { Grammar, OptionWords } from './grammar.ts';

/** Variable with the command line up to the cursor. If it is set, the program only prints the names of locks in use that may complete it. */
export const LINE_TO_COMPLETE = 'ETCD_LOCK_COMPLETE';

/** Milliseconds. Whoever presses the tab key does not wait longer. */
const PATIENCE = 1000;
const MOST_NAMES = 200;
/** Names that no shell expands, splits or takes for an option. Others are not completed. */
const PLAIN = /^[\w.,@%+/][\w.,@%+/-]*$/;

/** What the line says about the name to complete. */
export interface NameToComplete {
  /** What the user has typed of it. */
  readonly prefix: string;
  readonly connection: ConnectionOptions;
}

/**
 * Returns the lock name under the cursor. undefined if the word under the cursor is no name of a lock.
 * @param line the command line up to the cursor, with the name of the program
 */
export function nameUnderCursor(grammar: Grammar, line: string): NameToComplete | undefined {
  const [, ...words] = wordsOf(line);
  const prefix = words.pop();
  if (prefix === undefined || prefix.startsWith('-')) return undefined;
  const connection: Record<string, string> = {};
  let command: Grammar['commands'][number] | undefined;
  for (let at = 0; at < words.length; at += 1) {
    const [, flag = words[at] ?? '', attached] = /^(--[^=]+)=(.*)$/s.exec(words[at] ?? '') ?? [];
    if (!flag.startsWith('-')) {
      if (command) return undefined;
      command = grammar.commands.find(({ name }) => name === flag);
      if (!command) return undefined;
      continue;
    }
    const option = optionWith(flag, [...(command?.options ?? []), ...grammar.options]);
    if (!option || option.value === 'none') continue;
    if (attached === undefined) at += 1;
    // The value under the cursor, and what follows "--", is no name.
    if (at >= words.length) return undefined;
    connection[option.name] = attached ?? words[at] ?? '';
  }
  return command?.takesLock ? { prefix, connection } : undefined;
}

const optionWith = (flag: string, options: readonly OptionWords[]): OptionWords | undefined =>
  options.find(({ flags }) => flags.includes(flag));

/** Returns the words of a line, without their quotes. The last one is empty after a space. */
const wordsOf = (line: string): string[] =>
  [...line.trimStart().matchAll(/((?:'[^']*'?|"[^"]*"?|\\.|[^\s'"\\])*)(\s+|$)/g)]
    .slice(0, /\s$/.test(line) ? undefined : -1)
    .map(([, word = '']) => word.replace(/['"\\]/g, ''));

/** Prints the lock names that may complete the line. Prints nothing if etcd cannot be asked within a second, or refuses. */
export async function printNames(grammar: Grammar, line: string): Promise<void> {
  const wanted = nameUnderCursor(grammar, line);
  if (!wanted) return;
  const timer = setTimeout(() => process.exit(0), PATIENCE);
  try {
    const client = new EtcdClient(storeOptions(wanted.connection));
    const { queues } = await client.surveyor.locks(wanted.prefix, { ttls: false });
    const used = queues.filter(({ entries }) => entries.length > 0);
    const names = used.map(({ name }) => name).filter((name) => PLAIN.test(name));
    for (const name of names.sort().slice(0, MOST_NAMES)) print(name);
    await client.close();
  } catch {
    // A shell shows no message while it completes.
  } finally {
    clearTimeout(timer);
  }
}
