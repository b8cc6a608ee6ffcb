import { Command } from 'commander';
import { holdersAmong } from '../../recipe/rules.ts';
import type { EtcdClient } from '../../v2/client.ts';
import { checkBeginning, type LockQueue, surveyLocks } from '../../v2/locks/survey.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { ABOUT_AGE, ageText, entryJson, ownerOf } from '../queues/show.ts';
import { JSON_FLAG, withClient } from '../session.ts';
import { print, printJson, remark, table } from '../streams.ts';

const ABOUT = `
HOLDER is the identity or else the uuid of who holds the lock, MODE whether it is shared with others, WAITERS how many
wait for it. TTL is in how many seconds its last holder expires unless renewed.
${ABOUT_AGE}
Here it is that of the first holder.
Locks that nobody holds are not listed, nor those with a part that begins with "_", which etcd hides; a PREFIX that has
this part with a "/" behind it lists them: ls _x/`;

/** `etcd-v2-lock ls`: who holds which lock. */
export function lsCommand(): Command {
  const command = new Command('ls')
    .description('List the locks that are held: by whom, how many wait, and for how long yet.')
    .argument('[prefix]', 'only locks whose name begins with it')
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => list(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    endings: ASKING,
    examples: [
      ['etcd-v2-lock ls', 'every lock'],
      ['etcd-v2-lock ls backup/ --json', 'those below "backup", for programs'],
    ],
  });
}

async function list(client: EtcdClient, prefix: string, { json }: { json?: boolean }): Promise<number> {
  checked(() => checkBeginning(prefix));
  const { queues, index } = await surveyLocks(client, prefix);
  const taken = queues.filter(({ entries }) => entries.length > 0).sort((a, b) => (a.name < b.name ? -1 : 1));
  if (json) {
    printJson(taken.map((queue) => lockJson(queue, index)));
  } else if (taken.length === 0) {
    remark(prefix === '' ? 'nobody holds a lock' : `nobody holds a lock whose name begins with ${prefix}`);
  } else {
    const rows = taken.map((queue) => row(queue, index));
    for (const line of table(['NAME', 'HOLDER', 'MODE', 'WAITERS', 'TTL', 'AGE'], rows)) print(line);
  }
  return ExitCode.ok;
}

function row({ name, entries }: LockQueue, index: number): string[] {
  const holders = holdersAmong(entries);
  const [first] = holders;
  if (!first) return [];
  const others = holders.length === 1 ? '' : ` and ${holders.length - 1} more`;
  const last = holders.reduce((most, { ttl = Number.POSITIVE_INFINITY }) => Math.max(most, ttl), 0);
  return [
    name,
    ownerOf(first) + others,
    first.mode,
    String(entries.length - holders.length),
    last === Number.POSITIVE_INFINITY ? 'never' : String(last),
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
