import { Command } from 'commander';
import { EtcdDirNotEmpty, EtcdKeyNotFound } from '../../errors.ts';
import type { EtcdClient } from '../../v2/client.ts';
import type { Node } from '../../v2/keys-api.ts';
import { checkBeginning, directoriesFrom, lockNameOf, readLockDirectories } from '../../v2/locks/survey.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { JSON_FLAG, withClient } from '../session.ts';
import { print, printJson, remark } from '../streams.ts';

const ABOUT = `
etcd keeps the directory of every lock that was ever wanted. One is removed only if it is empty at that moment: whoever
queues up meanwhile keeps the entry and the lock. A directory with a part that begins with "_" in it stays, since etcd
hides that part.`;

/** `etcd-v2-lock prune`: removes the directories of locks that nobody wants. */
export function pruneCommand(): Command {
  const command = new Command('prune')
    .description('Remove the empty directories of locks that nobody holds or waits for, and tell their names.')
    .argument('[prefix]', 'only locks whose name begins with it')
    .option('--dry-run', 'remove nothing, tell what would be removed')
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => prune(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    endings: ASKING,
    examples: [
      ['etcd-v2-lock prune --dry-run', 'see what is empty'],
      ['etcd-v2-lock prune jobs/', 'remove what is empty below "jobs"'],
    ],
  });
}

interface PruneOptions {
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

async function prune(client: EtcdClient, prefix: string, { dryRun, json }: PruneOptions): Promise<number> {
  checked(() => checkBeginning(prefix));
  const { tops } = await readLockDirectories(client, prefix);
  const names: string[] = [];
  for (const node of tops.flatMap(emptyWithin)) {
    const name = lockNameOf(client, node);
    if (!name.startsWith(prefix) || !(dryRun || (await isRemoved(client, node)))) continue;
    names.push(name);
    if (!json) print(name);
  }
  if (json) printJson(names);
  else if (names.length === 0) remark('no lock directory is empty');
  return ExitCode.ok;
}

/** The directories that have no entry in them, however deep; the innermost first. */
function emptyWithin(top: Node): Node[] {
  const empty = new Set<Node>();
  for (const directory of directoriesFrom(top).toReversed())
    if (directory.nodes.every((child) => empty.has(child))) empty.add(directory);
  return [...empty];
}

/** A race with whoever queues up, or with another `prune`, is lost. */
async function isRemoved(client: EtcdClient, { key }: Node): Promise<boolean> {
  try {
    await client.delete(key, { dir: true });
    return true;
  } catch (error) {
    if (error instanceof EtcdDirNotEmpty || error instanceof EtcdKeyNotFound) return false;
    throw error;
  }
}
