import { Command } from 'commander';
import { holdersAmong } from '../../recipe/rules.ts';
import type { EtcdClient } from '../../v2/client.ts';
import { checkPrefix, type LockQueue, surveyLocks } from '../../v2/locks/survey.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { ABOUT_AGE, ABOUT_TTL, ageText, entryJson, ownerOf } from '../queues/show.ts';
import { JSON_FLAG, withClient } from '../session.ts';
import { print, printJson, remark, table } from '../streams.ts';

const ABOUT = `
Columns:
  NAME     name of the lock
  HOLDER   identity of the first holder, or else its label, or else its uuid
  MODE     "exclusive" or "shared"
  WAITERS  number of waiters
  TTL      ${ABOUT_TTL} (the maximum of all holders)
  AGE      ${ABOUT_AGE}

Locks without a holder are not listed.

etcd does not list a key whose last part begins with "_", nor the keys below it. So the prefix must contain such a part,
followed by a "/": "ls _x/" lists the locks below "_x". A lock whose last part begins with "_", such as "_x" itself, is
never listed. Use inspect for such a lock.`;

/** `etcd-v2-lock ls`: lists locks with their holders. */
export function lsCommand(): Command {
  const command = new Command('ls')
    .description('List held locks with their holders and the number of waiters.')
    .argument('[prefix]', 'only locks whose name begins with this prefix')
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => list(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    endings: ASKING,
    examples: [
      ['etcd-v2-lock ls', 'list all held locks'],
      ['etcd-v2-lock ls backup/ --json', 'print the held locks below "backup" as JSON'],
    ],
  });
}

async function list(client: EtcdClient, prefix: string, { json }: { json?: boolean }): Promise<number> {
  checked(() => checkPrefix(prefix));
  const { queues, index } = await surveyLocks(client, prefix);
  const held = queues.filter(({ entries }) => entries.length > 0).sort((a, b) => (a.name < b.name ? -1 : 1));
  if (json) {
    printJson(held.map((queue) => lockJson(queue, index)));
  } else if (held.length === 0) {
    remark(prefix === '' ? 'no lock is held' : `no lock with the prefix ${prefix} is held`);
  } else {
    const rows = held.map((queue) => row(queue, index));
    for (const line of table(['NAME', 'HOLDER', 'MODE', 'WAITERS', 'TTL', 'AGE'], rows)) print(line);
  }
  return ExitCode.ok;
}

function row({ name, entries }: LockQueue, index: number): string[] {
  const holders = holdersAmong(entries);
  const [first] = holders;
  if (!first) return [];
  const others = holders.length === 1 ? '' : ` and ${holders.length - 1} more`;
  const longest = holders.reduce((most, { ttl = Number.POSITIVE_INFINITY }) => Math.max(most, ttl), 0);
  return [
    name,
    ownerOf(first) + others,
    first.mode,
    String(entries.length - holders.length),
    longest === Number.POSITIVE_INFINITY ? 'never' : String(longest),
    ageText(first, index),
  ];
}

function lockJson({ name, entries }: LockQueue, index: number) {
  const holders = holdersAmong(entries);
  return {
    name,
    mode: holders[0]?.mode,
    holders: holders.map((entry) => entryJson(entry, index)),
    waiters: entries.length - holders.length,
  };
}
