import { Command } from 'commander';
import type { EtcdClient } from '../../client.ts';
import { holdersAmong } from '../../recipe/rules.ts';
import type { LockQueue } from '../../recipe/survey.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { ABOUT_TIMES, lockColumns, lockRows } from '../queues/columns.ts';
import { queuedUntil } from '../queues/durations.ts';
import { entryJson } from '../queues/show.ts';
import { JSON_FLAG, WIDE_FLAG, withClient } from '../session.ts';
import { outputWidth, print, printJson, remark } from '../streams.ts';
import { aboutColumns, table } from '../table.ts';

const ABOUT = `
${aboutColumns(lockColumns)}

Locks without a holder are not listed.

${ABOUT_TIMES}

etcd v2 does not list a key whose last part begins with "_", nor the keys below it. To list such locks on v2, use a prefix
that contains this part and the "/" after it: "ls _x/" lists the locks below "_x". A lock whose last part begins with "_",
such as "_x" itself, is never listed. Use inspect for such a lock. With v3, these locks are listed like any other.`;

/** `etcd-v2-lock ls`: lists locks with their holders. */
export function lsCommand(): Command {
  const command = new Command('ls')
    .description('List held locks with their holders and the number of waiters.')
    .argument('[prefix]', 'only locks whose name begins with this prefix')
    .option(...JSON_FLAG)
    .option(...WIDE_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => list(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    exitReasons: ASKING,
    examples: [
      ['etcd-v2-lock ls', 'list all held locks'],
      ['etcd-v2-lock ls backup/ --json', 'print the held locks below "backup" as JSON'],
    ],
  });
}

interface ListOptions {
  readonly json?: boolean;
  readonly wide?: boolean;
}

async function list(client: EtcdClient, prefix: string, { json, wide = false }: ListOptions): Promise<number> {
  checked(() => client.surveyor.checkPrefix(prefix));
  const { queues, index } = await client.surveyor.locks(prefix);
  const held = queues.filter(({ entries }) => entries.length > 0).sort((a, b) => (a.name < b.name ? -1 : 1));
  if (json) {
    printJson(held.map((queue) => lockJson(queue, index)));
  } else if (held.length === 0) {
    remark(prefix === '' ? 'no lock is held' : `no lock with the prefix ${prefix} is held`);
  } else {
    const width = wide ? Number.POSITIVE_INFINITY : outputWidth();
    for (const line of table(lockColumns, lockRows(held, queuedUntil(Date.now())), width)) print(line);
  }
  return ExitCode.ok;
}

function lockJson({ name, entries }: LockQueue, index: number) {
  const holders = holdersAmong(entries);
  return {
    name,
    mode: holders[0]?.mode,
    limit: holders[0]?.limit ?? null,
    holders: holders.map((entry) => entryJson(entry, index)),
    waiters: entries.length - holders.length,
  };
}
