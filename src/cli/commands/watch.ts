import { Command } from 'commander';
import { ignore } from '../../base/cancellation.ts';
import type { EtcdClient } from '../../client.ts';
import { holdersAmong } from '../../recipe/rules.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { type EventRow, eventColumns } from '../queues/columns.ts';
import { timeOfDay } from '../queues/durations.ts';
import { type Follower, follow } from '../queues/follow.ts';
import { ABOUT_PYTHON_ETCD, entryJson } from '../queues/show.ts';
import { withClient } from '../session.ts';
import { untilSignalled } from '../signals.ts';
import { complain, print, printJson, remark } from '../streams.ts';
import { aboutColumns, Lines } from '../table.ts';

const ABOUT = `
Prints a line with headings and one line for each current entry, with the event "holds" or "waits", then one line per event. Renewals are not
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
      await follow(client.surveyor, name, follower(json ? JSON_LINES : new EventLines()), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return ExitCode.ok;
  });
}

/** A row without its time. */
type Event = Omit<EventRow, 'time'>;

interface Printer {
  /** Called once with the first queue, before its entries are printed. */
  begin(events: readonly Event[]): void;
  print(event: Event): void;
  clusterChanged(index: number, clusterId: string | undefined): void;
}

function follower(printer: Printer): Follower {
  return {
    onQueue({ queue: { name, entries }, index, clusterId }, clusterChanged) {
      const holders = holdersAmong(entries).length;
      const events = entries.map((entry, rank): Event => ({ event: rank < holders ? 'holds' : 'waits', entry, index }));
      if (clusterChanged) printer.clusterChanged(index, clusterId);
      else printer.begin(events);
      if (entries.length === 0) remark(`the queue of ${name} is empty; waiting for events`);
      for (const event of events) printer.print(event);
    },
    onEvents(events, index) {
      for (const { kind, entry } of events) printer.print({ event: kind, entry, index });
    },
    onOutage: ({ message }) => complain(`cannot follow the queue, retrying: ${message}`),
    onRecovery: () => complain('following the queue again'),
  };
}

const JSON_LINES: Printer = {
  begin: ignore,
  print: ({ event, entry, index }) => printJson({ time: new Date(), index, event, entry: entryJson(entry, index) }),
  clusterChanged: (index, clusterId) => printJson({ time: new Date(), index, event: 'cluster-changed', clusterId }),
};

/** Prints a table whose columns are as wide as the events so far need. */
class EventLines implements Printer {
  readonly #lines = new Lines(eventColumns);

  begin(events: readonly Event[]): void {
    print(this.#lines.head(events.map((event) => ({ time: clock(), ...event }))));
  }

  print(event: Event): void {
    print(this.#lines.line({ time: clock(), ...event }));
  }

  clusterChanged(index: number, clusterId: string | undefined): void {
    print(`${clock()}  ${index}  cluster ID changed to ${clusterId}; the queue of this cluster follows`);
  }
}

/** Returns the local time as HH:MM:SS.mmm. */
function clock(): string {
  const time = new Date();
  return `${timeOfDay(time)}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}
