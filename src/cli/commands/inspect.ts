import { Command } from 'commander';
import { holdersAmong } from '../../recipe/rules.ts';
import type { EtcdClient } from '../../v2/client.ts';
import { type QueueSurvey, surveyLock } from '../../v2/locks/survey.ts';
import { checkLockName } from '../../v2/paths.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { ABOUT_AGE, ABOUT_PYTHON_ETCD, ABOUT_TTL, ageText, entryJson } from '../queues/show.ts';
import { JSON_FLAG, withClient } from '../session.ts';
import { print, printJson, remark, table } from '../streams.ts';

const ABOUT = `
Columns:
  #         position in the queue
  STATE     "holds" or "waits"; several shared entries can hold the lock together
  MODE      "exclusive" or "shared"
  IDENTITY  identity of the client that added the entry, or "-"
  LABEL     label of the client, by default its host name and process id, or "-"
  UUID      uuid of the entry
  TTL       ${ABOUT_TTL}
  AGE       ${ABOUT_AGE}
  KEY       etcd key of the entry

${ABOUT_PYTHON_ETCD}`;

const HEADINGS = ['#', 'STATE', 'MODE', 'IDENTITY', 'LABEL', 'UUID', 'TTL', 'AGE', 'KEY'];

/** `etcd-v2-lock inspect`: shows the queue of one lock. */
export function inspectCommand(): Command {
  const command = new Command('inspect')
    .description('Show the queue of a lock: holders first, then waiters in order.')
    .argument('<name>', 'name of the lock')
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => inspect(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    endings: ASKING,
    examples: [['etcd-v2-lock inspect backup', 'show the holder of "backup" and its waiters']],
  });
}

async function inspect(client: EtcdClient, name: string, { json }: { json?: boolean }): Promise<number> {
  checked(() => checkLockName(name));
  const survey = await surveyLock(client, name);
  if (json) {
    printJson(queueJson(survey));
    return ExitCode.ok;
  }
  const { entries } = survey.queue;
  if (entries.length === 0) remark(`the queue of ${name} is empty`);
  else for (const line of table(HEADINGS, rows(survey))) print(line);
  for (const note of notes(survey)) print(note);
  return ExitCode.ok;
}

function rows({ queue: { entries }, index }: QueueSurvey): string[][] {
  const holders = holdersAmong(entries).length;
  return entries.map((entry, rank) => [
    String(rank + 1),
    rank < holders ? 'holds' : 'waits',
    entry.mode,
    entry.identity ?? '-',
    entry.label ?? '-',
    entry.uuid || '(no value)',
    String(entry.ttl ?? 'never'),
    ageText(entry, index),
    entry.key,
  ]);
}

function notes({ queue: { entries, ignored } }: QueueSurvey): string[] {
  const permanent = entries.filter(({ ttl }) => ttl === undefined);
  return [
    ...permanent.map(({ key }) => `${key} never expires: it stays in the queue until it is released.`),
    ...ignored.map((key) => `${key} is not an entry, because its name is not a number: locks ignore it.`),
  ];
}

function queueJson({ queue: { name, entries, ignored }, index }: QueueSurvey) {
  const holders = holdersAmong(entries).length;
  return {
    name,
    index,
    entries: entries.map((entry, rank) => ({
      position: rank + 1,
      state: rank < holders ? 'holds' : 'waits',
      ...entryJson(entry, index),
    })),
    ignored,
  };
}
