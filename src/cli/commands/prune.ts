import { Command } from 'commander';
import type { EtcdClient } from '../../client.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { JSON_FLAG, withClient } from '../session.ts';
import { print, printJson, remark } from '../streams.ts';

const ABOUT = `
etcd v2 keeps the directory of a lock after its last entry is gone. A Node.js client removes it 15 seconds after its last
use of the lock. prune removes what others leave: python-etcd, and processes that ended before that. etcd v3 has no
directories, so prune has no effect with --api v3.

prune removes a directory only if it is empty when etcd handles the request, so it never removes an entry that was just
added. A directory that contains a name beginning with "_" is kept, because etcd v2 does not list such names.`;

/** `etcd-v2-lock prune`: removes the directories of unused locks. */
export function pruneCommand(): Command {
  const command = new Command('prune')
    .description('Remove the empty directories of unused locks, and print the names of these locks.')
    .argument('[prefix]', 'only locks whose name begins with this prefix')
    .option('--dry-run', 'print what would be removed, but remove nothing')
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => prune(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    exitReasons: ASKING,
    examples: [
      ['etcd-v2-lock prune --dry-run', 'list empty directories without removing them'],
      ['etcd-v2-lock prune jobs/', 'remove empty directories below "jobs"'],
    ],
  });
}

interface PruneOptions {
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

async function prune(client: EtcdClient, prefix: string, { dryRun, json }: PruneOptions): Promise<number> {
  checked(() => client.surveyor.checkPrefix(prefix));
  const names: string[] = [];
  for await (const name of client.surveyor.prune(prefix, { dryRun: dryRun === true })) {
    names.push(name);
    if (!json) print(name);
  }
  if (json) printJson(names);
  else if (names.length === 0) remark('no empty lock directories');
  return ExitCode.ok;
}
