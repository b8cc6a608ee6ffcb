import { Command } from 'commander';
import { Deadline } from '../../base/time.ts';
import { holdersAmong } from '../../recipe/rules.ts';
import type { ParsedEntry } from '../../recipe/survey.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { JSON_FLAG } from '../session.ts';
import { print, printJson } from '../streams.ts';
import { formatHandle } from './handle.ts';
import { entryOf, HANDLE_FLAG, type OpenHandle, withHandle } from './with-handle.ts';

const ABOUT = `
The TTL is the one that "acquire" was given. It begins anew now. A handle of --api both has an entry in each store, and
"renew" prints a line for each. If the lock was lost, "renew" changes nothing and exits with 75. It never acquires the
lock again: someone else may have held it.

With --json, it prints name, key, uuid, ttl, fencingToken and handle.`;

/** `etcd-v2-lock renew`: renews a hold of `acquire`. */
export function renewCommand(): Command {
  const command = new Command('renew')
    .description('Renew a lock that "acquire" has acquired.')
    .requiredOption(...HANDLE_FLAG)
    .option(...JSON_FLAG)
    .addHelpText('after', ABOUT)
    .action(() => withHandle(command, (open) => renew(open, command.opts<{ json?: boolean }>().json)));
  return explain(command, {
    exitReasons: [...ASKING, 'lost'],
    meanings: { lost: 'lock lost' },
  });
}

async function renew(open: OpenHandle, json = false): Promise<number> {
  const { handle, client } = open;
  const { name, uuid, ttl, fencingToken } = handle;
  const { key, value } = await holder(open);
  // On v3, "acquire" has chosen the key if its wait had queued up often.
  const ticket = client.store.queue(name).ticket(value, { key });
  if ((await ticket.find())?.key !== key) throw lost(open, 'its key was written again');
  await ticket.leave({ until: Deadline.after(ttl) });
  await holder(open);
  if (json) printJson({ name, key, uuid, ttl, fencingToken, handle: formatHandle(handle) });
  else print(`${key} renewed: ${ttl} s left.`);
  return ExitCode.ok;
}

/** Reads the entry. @throws {CliError} unless it holds the lock */
async function holder(open: OpenHandle): Promise<ParsedEntry> {
  const { queue } = await open.client.surveyor.lock(open.handle.name, { ttls: false });
  const entry = entryOf(open, queue);
  if (!entry) throw lost(open, 'its entry has expired, or was removed');
  if (!holdersAmong(queue.entries).includes(entry)) throw lost(open, 'another entry is before it in the queue');
  return entry;
}

const lost = ({ handle: { name }, api }: OpenHandle, why: string): CliError =>
  new CliError(`${name} is no longer held on ${api} with this handle: ${why}`, ExitCode.lost);
