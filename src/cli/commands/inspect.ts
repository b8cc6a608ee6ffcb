import { Command } from 'commander';
import type { EtcdClient } from '../../client.ts';
import type { QueueSurvey } from '../../recipe/survey.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { ABOUT_TIMES, entryColumns, entryRows, stateOf } from '../queues/columns.ts';
import { queuedUntil } from '../queues/durations.ts';
import { ABOUT_PYTHON_ETCD, entryJson } from '../queues/show.ts';
import { JSON_FLAG, WIDE_FLAG, withClient } from '../session.ts';
import { outputWidth, print, printJson, remark } from '../streams.ts';
import { aboutColumns, table } from '../table.ts';

const ABOUT = `
${aboutColumns(entryColumns)}

${ABOUT_TIMES}

${ABOUT_PYTHON_ETCD}`;

/** `etcd-v2-lock inspect`: shows the queue of one lock. */
export function inspectCommand(): Command {
  const command = new Command('inspect')
    .description('Show the queue of a lock: holders first, then waiters in order.')
    .argument('<name>', 'name of the lock')
    .option(...JSON_FLAG)
    .option(...WIDE_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => inspect(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    exitReasons: ASKING,
    examples: [['etcd-v2-lock inspect backup', 'show the holder of "backup" and its waiters']],
  });
}

interface InspectOptions {
  readonly json?: boolean;
  readonly wide?: boolean;
}

async function inspect(client: EtcdClient, name: string, { json, wide = false }: InspectOptions): Promise<number> {
  checked(() => client.surveyor.checkName(name));
  const survey = await client.surveyor.lock(name);
  if (json) {
    printJson(queueJson(survey));
    return ExitCode.ok;
  }
  const { entries } = survey.queue;
  const width = wide ? Number.POSITIVE_INFINITY : outputWidth();
  const rows = entryRows(entries, queuedUntil(Date.now()), width < Number.POSITIVE_INFINITY);
  if (entries.length === 0) remark(`the queue of ${name} is empty`);
  else for (const line of table(entryColumns, rows, width)) print(line);
  for (const note of notes(survey)) print(note);
  return ExitCode.ok;
}

function notes({ queue: { entries, ignored } }: QueueSurvey): string[] {
  const permanent = entries.filter(({ ttl }) => ttl === undefined);
  return [
    ...permanent.map(({ key }) => `${key} never expires: it stays in the queue until it is released.`),
    ...ignored.map((key) => `${key} is not an entry, because its name is not a number: locks ignore it.`),
  ];
}

function queueJson(survey: QueueSurvey) {
  const { name, ignored } = survey.queue;
  const entries = entryRows(survey.queue.entries, queuedUntil(Date.now()), false).map((row) => ({
    position: row.position,
    state: stateOf(row),
    ...entryJson(row.entry, survey.index),
  }));
  return { name, index: survey.index, entries, ignored };
}
