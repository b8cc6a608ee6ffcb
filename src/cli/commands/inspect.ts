import { Command } from 'commander';
import { holdersAmong } from '../../recipe/rules.ts';
import type { EtcdClient } from '../../v2/client.ts';
import { type QueueSurvey, surveyLock } from '../../v2/locks/survey.ts';
import { checkLockName } from '../../v2/paths.ts';
import { checked, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { ABOUT_AGE, ABOUT_OWNERS, ageText, entryJson, ownerOf } from '../queues/show.ts';
import { JSON_FLAG, withClient } from '../session.ts';
import { print, printJson, remark, table } from '../streams.ts';

const ABOUT = `
Entries that share the lock hold it together. TTL is in how many seconds an entry expires unless renewed.
${ABOUT_AGE}
${ABOUT_OWNERS}`;

const HEADINGS = ['#', 'STATE', 'KIND', 'IDENTITY', 'UUID', 'TTL', 'AGE', 'KEY'];

/** `etcd-v2-lock inspect`: the queue of one lock. */
export function inspectCommand(): Command {
  const command = new Command('inspect')
    .description('Show the queue of a lock in its order: who holds it, who waits, and for how long yet.')
    .argument('<name>', 'the lock')
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(withClient((client, command) => inspect(client, command.args[0] ?? '', command.opts())));
  return explain(command, {
    endings: ASKING,
    examples: [['etcd-v2-lock inspect backup', 'who holds "backup", and who comes next']],
  });
}

async function inspect(client: EtcdClient, name: string, { json }: { json?: boolean }): Promise<number> {
  checked(() => checkLockName(name));
  const survey = await surveyLock(client, name);
  if (json) {
    printJson(surveyJson(survey));
    return ExitCode.ok;
  }
  const { entries } = survey.queue;
  if (entries.length === 0) remark(`nobody holds ${name} or waits for it`);
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
    entry.identity === undefined ? '-' : ownerOf(entry),
    entry.uuid || '(no value)',
    String(entry.ttl ?? 'never'),
    ageText(entry, index),
    entry.key,
  ]);
}

function notes({ queue: { entries, strangers } }: QueueSurvey): string[] {
  const lasting = entries.filter(({ ttl }) => ttl === undefined);
  return [
    ...lasting.map(({ key }) => `${key} never expires: only a release ends it.`),
    ...strangers.map((key) => `${key} is no entry, since no number names it: locks ignore it.`),
  ];
}

function surveyJson({ queue: { name, entries, strangers }, index }: QueueSurvey) {
  const holders = holdersAmong(entries).length;
  return {
    name,
    index,
    entries: entries.map((entry, rank) => ({
      position: rank + 1,
      state: rank < holders ? 'holds' : 'waits',
      ...entryJson(entry, index),
    })),
    ignored: strangers,
  };
}
