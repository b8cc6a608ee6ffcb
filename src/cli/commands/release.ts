import { Command, Option } from 'commander';
import { holdersAmong } from '../../recipe/rules.ts';
import type { EtcdClient } from '../../v2/client.ts';
import { type LockQueue, type ParsedEntry, surveyLock } from '../../v2/locks/survey.ts';
import { baseName, checkLockName } from '../../v2/paths.ts';
import { checked, ExitCode, UsageError } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { type Removal, removeEntry } from '../queues/removal.ts';
import { ABOUT_OWNERS, describe, entryJson, ownerOf } from '../queues/show.ts';
import { JSON_FLAG, withClient } from '../session.ts';
import { complain, print, printJson } from '../streams.ts';

const ABOUT = `
The entry is shown first, with --json too, then removed if it has not changed meanwhile; the exit code tells.
One that holds the lock is removed with --force only: the next in line gets the lock at once, while the holder does not
know until it renews next (this package: within a third of its TTL; python-etcd: never) and goes on working. Two jobs are
then at work, unless a fencing token stops the earlier one; so end the holder first.
${ABOUT_OWNERS}
To this command --key is the entry; etcdctl's --key, the private key, is --key-file here, or goes before "release".`;

interface ReleaseOptions {
  readonly uuid?: string;
  readonly entryKey?: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

/** `etcd-v2-lock release`: frees one entry of a queue. */
export function releaseCommand(): Command {
  const entryKey = new Option('--key <key>', 'its key, or the last part of it');
  // Its own name is that of the private key.
  entryKey.attributeName = () => 'entryKey';
  const command = new Command('release')
    .description('Remove one entry from the queue of a lock, after showing it.')
    .argument('<name>', 'the lock')
    .addOption(new Option('--uuid <uuid>', 'the uuid of the entry, as inspect shows it').conflicts('entryKey'))
    .addOption(entryKey)
    .option('--force', 'also an entry that holds the lock: two jobs may then be at work at once')
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => release(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    endings: ['no', ...ASKING],
    examples: [
      ['etcd-v2-lock release backup --key 00000000000000000042', 'take one who waits out of the queue'],
      ['etcd-v2-lock release backup --uuid 9c2e… --force', 'free the lock of a holder that is known to be dead'],
    ],
  });
}

async function release(client: EtcdClient, name: string, options: ReleaseOptions): Promise<number> {
  checked(() => checkLockName(name));
  const matches = matcher(`${client.lockPrefix}/${name}`, options);
  const { queue, index } = await surveyLock(client, name);
  const found = queue.entries.filter(matches);
  const [entry] = found;
  if (!entry) return refuse(`no entry of ${name} has this ${askedBy(options)}.`, here(queue));
  if (found.length > 1)
    return refuse(`${found.length} entries have this uuid. Tell one by --key:`, found.map(describe));
  if (options.json) printJson(entryJson(entry, index));
  else print(describe(entry));
  if (holdersAmong(queue.entries).includes(entry)) {
    complain(consequence(queue, entry));
    if (!options.force) return refuse('Not removed. To remove it all the same, use --force.');
  }
  return tell(await removeEntry(client, entry), entry, options);
}

/** What the removal of a holder leads to. */
function consequence({ name, entries }: LockQueue, entry: ParsedEntry): string {
  const before = holdersAmong(entries);
  const after = holdersAmong(entries.filter((other) => other !== entry));
  const heirs = after.filter((heir) => !before.includes(heir)).map(ownerOf);
  const others = after.length > 0 ? `${name} stays with ${after.map(ownerOf).join(', ')}` : 'it is free for anyone';
  const next = heirs.length > 0 ? `${heirs.join(', ')} gets it at once` : others;
  return (
    `${entry.key} holds ${name}. Once it is removed, ${next}, while ${ownerOf(entry)} does not know until it ` +
    'renews next (this package: within a third of its TTL; python-etcd: never) and goes on working: two jobs at once, ' +
    'unless a fencing token stops the earlier one.'
  );
}

/** @throws {UsageError} for what can be no entry of this lock */
function matcher(path: string, { uuid, entryKey: key }: ReleaseOptions): (entry: ParsedEntry) => boolean {
  if (uuid !== undefined) return (entry) => entry.uuid === uuid;
  if (key === undefined) throw new UsageError('which entry? Tell it by --uuid or --key, as inspect shows them');
  const whole = key.startsWith('/') ? key : `${path}/${key}`;
  if (whole !== `${path}/${baseName(whole)}` || baseName(whole) === '')
    throw new UsageError(`--key must be a key in ${path}, or the last part of one, got ${JSON.stringify(key)}`);
  return (entry) => entry.key === whole;
}

const askedBy = ({ uuid, entryKey: key }: ReleaseOptions): string =>
  uuid === undefined ? `key, ${JSON.stringify(key)}` : `uuid, ${JSON.stringify(uuid)}`;

const here = ({ entries }: LockQueue): string[] =>
  entries.length === 0 ? ['Its queue is empty.'] : ['In its queue:', ...entries.map(describe)];

function refuse(why: string, lines: readonly string[] = []): number {
  complain(why);
  for (const line of lines) complain(line);
  return ExitCode.no;
}

function tell(removal: Removal, entry: ParsedEntry, { json }: ReleaseOptions): number {
  const { key } = entry;
  switch (removal) {
    case 'removed':
      if (!json) print(`${key} is removed.`);
      return ExitCode.ok;
    case 'absent':
      complain(`${key} is not there any more. etcd's answer was lost, so that it may have ended by itself.`);
      return ExitCode.ok;
    case 'gone':
      return refuse(`${key} was gone before it could be removed: released or expired meanwhile.`);
    case 'changed':
      return refuse(`${key} was not removed: its value has changed meanwhile. Inspect the lock again.`);
    case 'present':
      return refuse(
        `${key} is still there. etcd's answer was lost, so that it may yet be removed: inspect the lock again.`,
      );
  }
}
