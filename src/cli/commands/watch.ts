import { Command } from 'commander';
import type { EtcdClient } from '../../client.ts';
import { holdersAmong } from '../../recipe/rules.ts';
import type { ParsedEntry } from '../../recipe/survey.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { eventColumns } from '../queues/columns.ts';
import { type Follower, follow } from '../queues/follow.ts';
import { ABOUT_PYTHON_ETCD, entryJson } from '../queues/show.ts';
import { withClient } from '../session.ts';
import { untilSignalled } from '../signals.ts';
import { complain, print, printJson, remark } from '../streams.ts';
import { aboutColumns, lines } from '../table.ts';

const ABOUT = `
Prints one line for each current entry, with the event "holds" or "waits", then one line per event. Renewals are not
printed. If etcd cannot be reached at the start, watch exits. During a later outage, it prints the error on stderr and
retries.

${aboutColumns(eventColumns)}

${ABOUT_PYTHON_ETCD}

etcd v3 reports an expired entry as deleted. So on etcd v3, watch prints "released" or "left" for it, never "expired". With
--json, the event "cluster-changed" has the ID of the new cluster and no entry. The queue of the new cluster follows.

Events:
  queued      the entry was added to the queue
  acquired    the entry now holds the lock
  released    the entry held the lock and was removed
  left        the waiter left the queue: its entry was removed
  expired     the entry was not renewed within its TTL
  gone        the entry was removed or expired while watch missed events
  re-created  the entry was created again under its old key, as by a late renewal of python-etcd
  changed     the value of the entry was replaced
  wiped       the value of the entry was cleared`;

/** `etcd-v2-lock watch`: follows a queue until a signal ends it. */
export function watchCommand(): Command {
  const command = new Command('watch')
    .description('Follow the queue of a lock, one line per event, until interrupted.')
    .argument('<name>', 'name of the lock')
    .option('--json', 'print JSON, one object per line')
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => watch(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    exitReasons: [...ASKING, 'signalled'],
    examples: [['etcd-v2-lock watch backup', 'follow the queue of "backup"']],
  });
}

async function watch(client: EtcdClient, name: string, { json = false }: { json?: boolean }): Promise<number> {
  checked(() => client.surveyor.checkName(name));
  return untilSignalled(async (signal) => {
    try {
      await follow(client.surveyor, name, follower(json ? printJsonLine : linePrinter(), json), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return ExitCode.ok;
  });
}

type Printer = (event: string, entry: ParsedEntry, index: number) => void;

const follower = (printEntry: Printer, json: boolean): Follower => ({
  onQueue({ queue: { name, entries }, index, clusterId }, clusterChanged) {
    if (clusterChanged && json) printJson({ time: new Date(), index, event: 'cluster-changed', clusterId });
    else if (clusterChanged)
      print(`${clock()}  ${index}  cluster ID changed to ${clusterId}; the queue of this cluster follows`);
    if (entries.length === 0) remark(`the queue of ${name} is empty; waiting for events`);
    const holders = holdersAmong(entries).length;
    for (const [rank, entry] of entries.entries()) printEntry(rank < holders ? 'holds' : 'waits', entry, index);
  },
  onEvents(events, index) {
    for (const { kind, entry } of events) printEntry(kind, entry, index);
  },
  onOutage: ({ message }) => complain(`cannot follow the queue, retrying: ${message}`),
  onRecovery: () => complain('following the queue again'),
});

function linePrinter(): Printer {
  const lineOf = lines(eventColumns);
  return (event, entry, index) => print(lineOf({ time: clock(), index, event, entry }));
}

const printJsonLine: Printer = (event, entry, index) =>
  printJson({ time: new Date(), index, event, entry: entryJson(entry, index) });

/** Returns the local time as HH:MM:SS.mmm. */
function clock(): string {
  const time = new Date();
  const [hours, minutes, seconds] = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) =>
    String(part).padStart(2, '0'),
  );
  return `${hours}:${minutes}:${seconds}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}
