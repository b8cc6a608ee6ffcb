import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { hostname } from 'node:os';
import { Command } from 'commander';
import { errorText } from '../../base/error-text.ts';
import type { EtcdClient } from '../../client.ts';
import type { OpenHeld } from '../../manager/held.ts';
import { LockManager } from '../../manager/manager.ts';
import { checkRequest, type HoldOptions } from '../../manager/options.ts';
import { channelOf, type RequestTrace } from '../../manager/trace.ts';
import { lastPart } from '../../recipe/survey.ts';
import { number } from '../arguments.ts';
import { clientOptions, connectionOf } from '../connection.ts';
import { asConflict, CliError, checked, ExitCode, exitCodeOf } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { conflictExitCodeOption, ifAvailableOption, limitOption, quietOption, SHARED_FLAG } from '../job/options.ts';
import { withProgress } from '../job/progress.ts';
import { JSON_FLAG, withClient } from '../session.ts';
import { untilSignalled } from '../signals.ts';
import { jsonOf, printOrReject, remark } from '../streams.ts';
import { formatHandle } from './handle.ts';

interface Flags {
  readonly ttl: number;
  readonly shared?: boolean;
  readonly limit?: number;
  readonly timeout: number;
  readonly ifAvailable?: boolean;
  readonly label?: string;
  readonly conflictExitCode?: number;
  readonly quiet?: boolean;
  readonly json?: boolean;
}

/** Maximum TTL while waiting: how long a waiter that was killed blocks others. */
const WAITING_TTL = 30;

const ABOUT = `
"acquire" prints a handle when the lock is held, and ends. The lock stays held until "release --handle", or until the TTL
has passed since "acquire" or the last "renew --handle". Prefer "run", which does what nobody does here:
- Nobody renews the lock. If the work takes longer than the TTL, someone else gets the lock while it still runs.
- Nobody stops the work when the lock is lost. Stop it yourself some seconds before the TTL has passed, or let the resource
  check the fencing token.
- If the work crashes, others wait until the TTL has passed.

The handle is one word that no shell changes, such as v3:3600:118:cdf8…:019e…:/_locks:backup:019e…. It has the API, the TTL in
seconds, the fencing token, the cluster, the uuid, the lock prefix, the name, and the last part of the key. It contains no
secret: whoever can read the queue can build it. So it is not a protection: whoever may write to the queue can release the
lock.

With --json, it prints name, mode, key, uuid, ttl, fencingToken, fencingTokens (one for each API), and handle.

While "acquire" waits, its entry has a TTL of at most ${WAITING_TTL} seconds. A signal that ends the wait removes the entry. So does
"acquire" itself if it cannot print the handle, for instance because its reader is gone; it then exits with 125.

If "acquire" is killed by SIGKILL, or its host fails, the entry expires by itself. A waiter expires after at most ${WAITING_TTL}
seconds, and a holder after at most the TTL. Nobody has a handle of such a hold. To end it earlier, find its uuid with
"inspect", and use "release --uuid" with --force.`;

/** `etcd-v2-lock acquire`: acquires a lock for other commands to release. */
export function acquireCommand(): Command {
  const command = new Command('acquire')
    .description('Acquire a lock, print a handle and end. The lock is held until "release --handle", without renewals.')
    .argument('<name>', 'name of the lock')
    .requiredOption(
      '--ttl <seconds>',
      'how long the lock is held without a renewal, and how long a crash blocks others',
      number,
    )
    .option(...SHARED_FLAG)
    .addOption(limitOption())
    .option('--timeout <seconds>', 'maximum seconds to wait for the lock; 0: no limit', number, 0)
    .addOption(ifAvailableOption())
    .option('--label <text>', 'label that shows people who holds or waits. Empty: none (default: host name)')
    .addOption(conflictExitCodeOption('the lock is taken, or the timeout passes while another holds the lock'))
    .option(...JSON_FLAG)
    .addOption(quietOption())
    .addHelpText('after', ABOUT)
    .action(withClient(acquire, clientOptions));
  return explain(command, {
    exitReasons: ['no', ...ASKING, 'lost', 'timedOut', 'signalled'],
    meanings: { no: 'lock taken, with --if-available', lost: 'lock lost before the handle could be printed' },
    examples: [
      ['handle=$(etcd-v2-lock acquire deploy --ttl 3600)', 'wait for the lock, and keep it for up to an hour'],
      ['etcd-v2-lock renew --handle "$handle"', 'keep it for an hour from now on'],
      ['etcd-v2-lock release --handle "$handle"', 'release it'],
    ],
  });
}

async function acquire(client: EtcdClient, command: Command): Promise<number> {
  const [name = ''] = command.args;
  const flags = command.opts<Flags>();
  const { ttl, conflictExitCode, quiet } = flags;
  const request = requestOf(flags);
  checked(() => {
    client.store.queue(name);
    checkRequest({ ...request, ttl }, {});
  });
  const locks = new LockManager(client);
  return untilSignalled(async (signal) => {
    try {
      const wait = () => locks.acquire(name, { ...request, signal });
      const held = await withProgress(locks, name, quiet ? 'quiet' : 'normal', wait);
      if (held) return await handOut(client, held, signal, command);
      if (!quiet) remark(`lock ${name} is taken`);
      return conflictExitCode ?? ExitCode.no;
    } catch (error) {
      if (signal.aborted && !(error instanceof CliError)) return ExitCode.ok;
      throw asConflict(error, conflictExitCode);
    }
  });
}

/** Returns the request. Its release leaves the entry in the queue, until `holdAtLeast` has passed. */
const requestOf = ({ shared = false, limit, ttl, timeout, ifAvailable = false, label }: Flags): HoldOptions => ({
  mode: shared ? 'shared' : 'exclusive',
  limit,
  ttl: Math.min(ttl, WAITING_TTL),
  holdAtLeast: ttl,
  timeout,
  ifAvailable,
  // Not the process id: this process ends, and the lock must not look like that of a crashed one.
  label: label ?? hostname(),
});

/** Leaves the entry in the queue, checks that it is there, and prints the handle. */
async function handOut(client: EtcdClient, held: OpenHeld, signal: AbortSignal, command: Command): Promise<number> {
  const { ttl, json, limit = null } = command.opts<Flags>();
  const { name, mode, key, uuid, fencingToken, fencingTokens } = held;
  const queue = client.store.queue(name);
  const trouble = await troubleOf(() => held.release());
  const mayStay = (error: unknown): never => {
    throw new CliError(
      `the handle of ${key} cannot be printed: ${errorText(error)}. The entry may hold the lock for ${ttl} s: to remove it, release the uuid ${uuid} with --force`,
      exitCodeOf(error),
    );
  };
  const { entries } = await queue.read().catch(mayStay);
  const entry = entries.find((one) => one.key === key);
  if (!entry) throw new CliError(`${key} was lost before its handle could be printed`, ExitCode.lost);
  const removeAgain = () => queue.evict(entry, {}).catch(mayStay);
  const removedFor = async (why: string, exitCode: number): Promise<never> => {
    await removeAgain();
    throw new CliError(`${key} was removed again: ${why}`, exitCode);
  };
  if (signal.aborted) {
    await removeAgain();
    return ExitCode.ok;
  }
  if (trouble !== undefined) return removedFor(`its TTL could not be set: ${errorText(trouble)}`, exitCodeOf(trouble));
  const { lockPrefix, clusterId = '' } = client;
  const { api = 'v2' } = clientOptions(connectionOf(command));
  const handle = formatHandle({ api, ttl, fencingToken, clusterId, uuid, lockPrefix, name, id: lastPart(key) });
  const output = { name, mode, limit, key, uuid, ttl, fencingToken, fencingTokens, handle };
  await printOrReject(json ? jsonOf(output) : handle).catch((error: unknown) =>
    removedFor(`its handle could not be printed: ${errorText(error)}`, ExitCode.failed),
  );
  return ExitCode.ok;
}

/** Releases a hold. Resolves to the reason if its entry could not be left in the queue with its new TTL. */
async function troubleOf(release: () => Promise<unknown>): Promise<unknown> {
  let trouble: unknown;
  const onReleased = (message: unknown): void => {
    trouble = (message as RequestTrace).cleanupError;
  };
  subscribe(channelOf('released'), onReleased);
  try {
    await release();
  } finally {
    unsubscribe(channelOf('released'), onReleased);
  }
  return trouble;
}
