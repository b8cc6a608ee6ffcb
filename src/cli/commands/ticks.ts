import { Command } from 'commander';
import type { EtcdClient } from '../../client.ts';
import type { Schedule } from '../../manager/once/schedule.ts';
import { checked, ExitCode, UsageError } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { type JobTick, scheduleFor, tickOf } from '../queues/ticks.ts';
import { JSON_FLAG, WIDE_FLAG, withClient } from '../session.ts';
import { complain, outputWidth, print, printJson, remark } from '../streams.ts';
import { aboutColumns, type Column, table } from '../table.ts';

const COLUMNS: readonly Column<JobTick>[] = [
  {
    heading: 'JOB',
    about: 'name of the job, which is that of its lock',
    cell: ({ name }) => name,
    yields: 2,
    last: true,
  },
  {
    heading: 'LAST TICK',
    about: 'when the tick was due that a host has begun last; or "unreadable"',
    cell: ({ record }) => (record ? new Date(record.at).toISOString() : 'unreadable'),
  },
  {
    heading: 'STATE',
    about:
      '"ran"; "failed", if the job failed or lost its lock; "begun", if the job still runs, or its host crashed or could not reach etcd at the end',
    cell: ({ record }) => record?.state ?? '-',
  },
  {
    heading: 'HOST',
    about: 'label of the client that has begun it, by default its host name and process ID, or "-"',
    cell: ({ record }) => record?.label ?? '-',
    yields: 1,
  },
  {
    heading: 'MISSED',
    about:
      'with --once: number of ticks since that one, with the present one, that no host has begun; else "unknown", because etcd has no schedule',
    cell: ({ missed }) => (missed === undefined ? 'unknown' : String(missed)),
  },
];

const ABOUT = `
${aboutColumns(COLUMNS)}

A record expires when at least ten more ticks were due, and a day later. Then the job is not listed.

On etcd v2, give the name of a job: etcd does not list its record, because the key begins with "_".

With a name and --once, ticks exits with 1 unless the job of the present tick ran to its end. So a monitor can call it at a time when
the job must be done.

"ticks reset" removes the record of a job, unless it has changed since it was read. The next host that attempts a tick then
runs it, although the tick may have been run already. This is for a job that waits because a clock was ahead, or because its
record is unreadable, or whose failed tick must run again. If the last tick has no recorded end, its job may still run: then "ticks reset" needs --force.`;

interface TicksOptions {
  readonly once?: string;
  readonly timeZone?: string;
  readonly force?: boolean;
  readonly json?: boolean;
  readonly wide?: boolean;
}

/** `etcd-v2-lock ticks`: shows or removes what etcd keeps of jobs that run once per tick. */
export function ticksCommand(): Command {
  const command = new Command('ticks')
    .usage('[options] [reset] [name]')
    .description('Show the last tick of each job that runs once per tick ("run --once"), or of one job.')
    .argument('[name]', 'name of the job')
    .argument('[reset]', 'after "reset": name of the job whose record to remove')
    .option(
      '--once <every>',
      'schedule of the job, as "run --once" has it: counts the ticks that were missed, and checks the present one',
    )
    .option('--time-zone <zone>', 'time zone of the cron expression of --once, such as Europe/Berlin (default: UTC)')
    .option('--force', 'with "reset": remove the record even if the job of the last tick may still run')
    .option(...JSON_FLAG)
    .option(...WIDE_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => ticks(client, command.args, command.opts())));
  return explain(command, {
    exitReasons: ['no', ...ASKING],
    meanings: {
      no: 'no record, or record not removed; with --once, the job of the present tick did not run to its end',
    },
    examples: [
      ['etcd-v2-lock ticks import --once 1h', 'show which host ran "import" last, and fail unless it ran in this hour'],
      ['etcd-v2-lock ticks reset import', 'let the present tick of "import" run again'],
    ],
  });
}

async function ticks(client: EtcdClient, args: readonly string[], options: TicksOptions): Promise<number> {
  const [first, second] = args;
  if (second !== undefined && first !== 'reset')
    throw new UsageError(`two names given, but only "reset" may stand before a name: got ${JSON.stringify(first)}`);
  if (second !== undefined) return reset(client, second, options);
  const schedule = checked(() => scheduleIn(options));
  const found = await (first === undefined ? all(client) : one(client, first));
  const rows = [...found].map(([name, value]) => tickOf(name, value, schedule));
  if (options.json) {
    printJson(rows.map(jsonOf));
  } else if (rows.length > 0) {
    const width = options.wide ? Number.POSITIVE_INFINITY : outputWidth();
    for (const line of table(COLUMNS, rows, width)) print(line);
  }
  if (first !== undefined && rows.length === 0) return refuse(`no record of a tick of ${first}`);
  if (rows.length === 0) remark('no record of a tick');
  if (first !== undefined && schedule && !rows.every(({ record, missed }) => record?.state === 'ran' && missed === 0))
    return refuse(`the job of the tick ${new Date(schedule.current(Date.now())).toISOString()} did not run to its end`);
  return ExitCode.ok;
}

async function all({ surveyor }: EtcdClient): Promise<ReadonlyMap<string, string>> {
  if (!surveyor.markers) throw new UsageError('etcd v2 does not list the records of ticks: give the name of a job');
  return surveyor.markers();
}

async function one(client: EtcdClient, name: string): Promise<ReadonlyMap<string, string>> {
  const marker = await checked(() => client.store.marker(name)).read({});
  return new Map(marker ? [[name, marker.value]] : []);
}

async function reset(client: EtcdClient, name: string, { force = false, json }: TicksOptions): Promise<number> {
  const markers = checked(() => client.store.marker(name));
  const marker = await markers.read({});
  if (!marker) return refuse(`no record of a tick of ${name}`);
  const row = tickOf(name, marker.value, undefined);
  if (json) printJson(jsonOf(row));
  else for (const line of table(COLUMNS, [row])) print(line);
  if (row.record?.state === 'begun' && !force)
    return refuse(
      `${markers.key} was not removed: the last tick has no recorded end, so its job may still run. Use --force to remove the record anyway.`,
    );
  if (!(await markers.remove(marker, {})))
    return refuse(
      `${markers.key} was not removed: it has changed since it was read. A host has begun a tick, or ended one.`,
    );
  complain(`The next host that attempts a tick of ${name} runs it, also if that tick has been run before.`);
  if (!json) print(`${markers.key} removed.`);
  return ExitCode.ok;
}

function scheduleIn({ once, timeZone }: TicksOptions): Schedule | undefined {
  if (once === undefined && timeZone !== undefined) throw new TypeError('--time-zone needs --once');
  return once === undefined ? undefined : scheduleFor(once, timeZone);
}

const jsonOf = ({ name, record, missed }: JobTick) => ({
  name,
  lastTick: record ? new Date(record.at) : null,
  state: record?.state ?? null,
  host: record?.label ?? null,
  missed: missed ?? null,
});

function refuse(why: string): number {
  complain(why);
  return ExitCode.no;
}
