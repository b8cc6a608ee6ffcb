import { Command } from 'commander';
import { holdersAmong } from '../../recipe/rules.ts';
import type { EtcdClient } from '../../v2/client.ts';
import type { ParsedEntry } from '../../v2/locks/survey.ts';
import { baseName, checkLockName } from '../../v2/paths.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { type Follower, follow } from '../queues/follow.ts';
import { ABOUT_OWNERS, entryJson, fullOwnerOf, ttlText } from '../queues/show.ts';
import { withClient } from '../session.ts';
import { untilSignalled } from '../signals.ts';
import { complain, print, printJson, remark } from '../streams.ts';

const ABOUT = `
First come the entries there are (holds, waits), then one line for each event: local time, index of the store, what
happened, and the number, kind, owner and TTL of the entry. A renewal is no event. An outage of etcd is told on stderr,
and waited out.
${ABOUT_OWNERS}

Events:
  queued      a contender has come
  acquired    it holds the lock from now on
  released    a holder's entry was removed
  left        a waiter's entry was removed
  expired     nobody renewed the entry within its TTL
  gone        the entry ended unseen, while etcd could not be followed
  re-created  the entry is back under its old number: python-etcd renews so after it expired
  changed     the entry has another value
  wiped       the entry has lost its value`;

/** `etcd-v2-lock watch`: what becomes of a queue, until a signal ends it. */
export function watchCommand(): Command {
  const command = new Command('watch')
    .description('Follow the queue of a lock live, one line an event, until a signal ends it.')
    .argument('<name>', 'the lock')
    .option('--json', 'print JSON, one object a line, for programs')
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => watch(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    endings: [...ASKING, 'signalled'],
    examples: [['etcd-v2-lock watch backup', 'who comes, holds and goes']],
  });
}

async function watch(client: EtcdClient, name: string, { json = false }: { json?: boolean }): Promise<number> {
  checked(() => checkLockName(name));
  return untilSignalled(async (signal) => {
    try {
      return await follow(client, name, follower(json ? jsonLine : line, json), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      return ExitCode.ok;
    }
  });
}

type Tell = (what: string, entry: ParsedEntry, index: number) => void;

const follower = (tell: Tell, json: boolean): Follower => ({
  begins({ queue: { name, entries }, index, clusterId }, anew) {
    if (anew && json) printJson({ time: new Date(), index, event: 'cluster-changed', clusterId });
    else if (anew) print(`${clock()}  ${index}  another cluster answers from now on, ${clusterId}: this is its queue`);
    if (entries.length === 0) remark(`nobody holds ${name} or waits for it yet`);
    const holders = holdersAmong(entries).length;
    for (const [rank, entry] of entries.entries()) tell(rank < holders ? 'holds' : 'waits', entry, index);
  },
  happened(happenings, index) {
    for (const { what, entry } of happenings) tell(what, entry, index);
  },
  unreachable: ({ message }) => complain(`etcd cannot be followed, trying on: ${message}`),
  reachable: () => complain('etcd answers again'),
});

const line: Tell = (what, entry, index) =>
  print(
    [
      clock(),
      index,
      what.padEnd(10),
      baseName(entry.key),
      entry.mode,
      fullOwnerOf(entry),
      ...(ENDED.has(what) ? [] : [ttlText(entry.ttl)]),
    ].join('  '),
  );

/** What has ended has no TTL left. */
const ENDED = new Set(['released', 'left', 'expired', 'gone']);

const jsonLine: Tell = (event, entry, index) =>
  printJson({ time: new Date(), index, event, entry: entryJson(entry, index) });

/** Local time, as HH:MM:SS.mmm. */
function clock(): string {
  const time = new Date();
  const [hours, minutes, seconds] = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) =>
    String(part).padStart(2, '0'),
  );
  return `${hours}:${minutes}:${seconds}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}
