import { Command, Option } from 'commander';
import { printable } from '../../base/printable.ts';
import type { EtcdClient } from '../../client.ts';
import { holdersAmong } from '../../recipe/rules.ts';
import { type LockQueue, lastPart, type ParsedEntry, type Removal } from '../../recipe/survey.ts';
import { position } from '../arguments.ts';
import { checked, ExitCode, UsageError } from '../exit-codes.ts';
import { entryOf, HANDLE_FLAG, type OpenHandle, withHandle } from '../handles/with-handle.ts';
import { ASKING, explain } from '../help.ts';
import { consequence, resultOf, WAITER_REMOVED } from '../queues/removal.ts';
import { ABOUT_PYTHON_ETCD, describe, entryJson } from '../queues/show.ts';
import { JSON_FLAG, withClient } from '../session.ts';
import { complain, isConfirmed, print, printJson } from '../streams.ts';

const ABOUT = `
Select the entry with --uuid, --key or --position, as shown by "inspect". The beginning or the end of a uuid or a key is
enough if no other entry has it. "release" prints the entry, then removes this entry and no other, unless its value has
changed in between. On etcd v3, the last part of a key is an id, not a number.

Positions change while you read them. So a holder that is selected by --position is removed only after a question on the
terminal, which shows the entry.

An entry that holds the lock is removed only with --force. The next waiter then gets the lock at once, but the removed
holder continues to work until it notices the loss. A LockManager, such as "run", notices it at its next renewal, usually
within a third of the TTL; on etcd v3 usually within a second. By themselves, python-etcd, Go's Mutex and "etcdctl lock"
never notice it. Stop the holder first. Otherwise the removed holder and the next one work at the same time, unless a
fencing token stops the removed one.

${WAITER_REMOVED}

${ABOUT_PYTHON_ETCD}

With --handle, "release" ends a hold that "acquire" has begun: it needs no name and no --force. It removes the entry of the
handle and no other. If that has expired, or was removed, it says so and exits with 1. With a handle of --api both, it
removes the entry in each store.

After "release", --key selects the entry. To name the file of the private key, use --key-file, or put --key before
"release".`;

interface ReleaseOptions {
  readonly uuid?: string;
  readonly entryKey?: string;
  readonly position?: number;
  readonly handle?: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

/** `etcd-v2-lock release`: removes one entry from a queue. */
export function releaseCommand(): Command {
  const entryKey = new Option('--key <key>', 'key of the entry, its last part, or the beginning or end of that part');
  // By default, commander would store it under the same name as the option for the private key.
  entryKey.attributeName = () => 'entryKey';
  const command = new Command('release')
    .description('Remove one entry from the queue of a lock.')
    .argument('[name]', 'name of the lock; not with --handle')
    .addOption(
      new Option('--uuid <uuid>', 'uuid of the entry, or its beginning or end').conflicts(['entryKey', 'position']),
    )
    .addOption(entryKey.conflicts('position'))
    .addOption(new Option('--position <number>', 'position of the entry in the queue, from 1').argParser(position))
    .addOption(new Option(...HANDLE_FLAG).conflicts(['uuid', 'entryKey', 'position', 'force']))
    .option(
      '--force',
      'remove the entry even if it holds the lock: its holder and the next one may then work at the same time',
    )
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(async (name: string | undefined, options: ReleaseOptions) => {
      if (options.handle === undefined && name === undefined) command.error("error: missing required argument 'name'");
      if (options.handle === undefined) return bySelection(name, options, command);
      if (name !== undefined) command.error('error: --handle has the name of the lock: give no other');
      return withHandle(command, (open) => releaseHandle(open, options));
    });
  return explain(command, {
    exitReasons: ['no', ...ASKING],
    meanings: { no: 'entry not removed' },
    examples: [
      ['etcd-v2-lock release backup --key 00000042', 'remove a waiter from the queue'],
      ['etcd-v2-lock release backup --position 3', 'remove the third entry, if it is a waiter'],
      ['etcd-v2-lock release backup --uuid 9c2e… --force', 'release the lock of a holder that has crashed'],
    ],
  });
}

const bySelection = withClient((client, command) => release(client, command.args[0] ?? '', command.opts()));

async function releaseHandle(open: OpenHandle, options: ReleaseOptions): Promise<number> {
  const { handle, api, client } = open;
  const { queue, index } = await client.surveyor.lock(handle.name);
  const entry = entryOf(open, queue);
  if (!entry)
    return refuse(`${handle.name} was not held on ${api} with this handle: its entry has expired, or was removed.`);
  if (options.json) printJson(entryJson(entry, index));
  return report(await client.surveyor.remove(entry), entry, options);
}

async function release(client: EtcdClient, name: string, options: ReleaseOptions): Promise<number> {
  checked(() => client.surveyor.checkName(name));
  const { queue, index } = await client.surveyor.lock(name);
  const found = selector(queue.path, options)(queue.entries);
  const [entry] = found;
  if (!entry) return refuse(`no entry in the queue of ${name} has the ${criterion(options)}.`, listed(queue));
  if (found.length > 1)
    return refuse(
      `${found.length} entries have the ${criterion(options)}. Select one with its whole --key:`,
      found.map(describe),
    );
  if (options.json) printJson(entryJson(entry, index));
  else print(describe(entry));
  if (holdersAmong(queue.entries).includes(entry)) {
    complain(consequence(queue, entry));
    if (!options.force)
      return refuse(`${entry.key} was not removed: it holds the lock. Use --force to remove it anyway.`);
    if (options.position !== undefined && !(await isConfirmed(`Remove ${describe(entry)}? [y/N] `)))
      return refuse(
        `${entry.key} was not removed. Use --key ${lastPart(entry.key)} --force to remove it without a question.`,
      );
  }
  return report(await client.surveyor.remove(entry), entry, options);
}

type Selector = (entries: readonly ParsedEntry[]) => readonly ParsedEntry[];

/**
 * Returns the function that finds the selected entry, or several if the selection is ambiguous.
 * @throws {UsageError} if no entry is selected, or the key is not in the queue's directory
 */
function selector(path: string, { uuid, entryKey: key, position: at }: ReleaseOptions): Selector {
  if (at !== undefined) return (entries) => entries.slice(at - 1, at);
  // Entries of Go's Mutex have no uuid.
  if (uuid === '') throw new UsageError('--uuid must not be empty: select such an entry by --key or --position');
  if (uuid !== undefined) return (entries) => named(entries, uuid, (entry) => [entry.uuid]);
  if (key === undefined)
    throw new UsageError('no entry selected: use --uuid, --key or --position with a value shown by inspect');
  // With an empty lock prefix, the path on v3 does not begin with "/".
  const isWhole = key.startsWith('/') || key.startsWith(`${path}/`);
  const last = lastPart(key);
  if ((isWhole ? key : `${path}/${key}`) !== `${path}/${last}` || last === '')
    throw new UsageError(
      `--key must be a key in ${path}, its last part, or an end of that part, got ${JSON.stringify(key)}`,
    );
  // Another client's key need not be text: inspect shows it with escapes.
  return (entries) => named(entries, last, (entry) => [lastPart(entry.key), printable(lastPart(entry.key))]);
}

/** Returns the entries with this name, or else those with a name that begins or ends with it. */
function named(
  entries: readonly ParsedEntry[],
  text: string,
  namesOf: (entry: ParsedEntry) => readonly string[],
): readonly ParsedEntry[] {
  const exact = entries.filter((entry) => namesOf(entry).includes(text));
  if (exact.length > 0) return exact;
  // As a narrow table shows it.
  const part = text.replace(/^…|…$/g, '');
  if (part === '') return [];
  return entries.filter((entry) => namesOf(entry).some((name) => name.startsWith(part) || name.endsWith(part)));
}

function criterion({ uuid, entryKey: key, position: at }: ReleaseOptions): string {
  if (at !== undefined) return `position ${at}`;
  return uuid === undefined ? `key ${JSON.stringify(key)}` : `uuid ${JSON.stringify(uuid)}`;
}

const listed = ({ entries }: LockQueue): string[] =>
  entries.length === 0 ? ['The queue is empty.'] : ['Entries in the queue:', ...entries.map(describe)];

function refuse(why: string, lines: readonly string[] = []): number {
  complain(why);
  for (const line of lines) complain(line);
  return ExitCode.no;
}

function report(removal: Removal, entry: ParsedEntry, { json }: ReleaseOptions): number {
  const { isGone, text } = resultOf(removal, entry);
  if (!isGone) return refuse(text);
  if (removal !== 'removed') complain(text);
  else if (!json) print(text);
  return ExitCode.ok;
}
