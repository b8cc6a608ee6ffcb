import { Command, Option } from 'commander';
import { EtcdWatchTimedOut } from '../../errors.ts';
import type { OpenHeld } from '../../manager/held.ts';
import { LockManager } from '../../manager/manager.ts';
import { checkRequest, type HoldOptions } from '../../manager/options.ts';
import type { EtcdClient } from '../../v2/client.ts';
import { checkLockName } from '../../v2/paths.ts';
import { exitCode, number } from '../arguments.ts';
import { CliError, checked, ExitCode, exitCodeOfSignal } from '../exit-codes.ts';
import { ASKING, explain } from '../help.ts';
import { checkCommand } from '../job/command.ts';
import { guard } from '../job/guard.ts';
import { diesWithUs, Job } from '../job/job.ts';
import { withProgress } from '../job/progress.ts';
import { Relay } from '../job/relay.ts';
import { Starter } from '../job/starter.ts';
import { mayBePassword, NOT_SHOWN } from '../secrets.ts';
import { withClient } from '../session.ts';
import { complain, remark } from '../streams.ts';

interface Flags {
  readonly shared?: boolean;
  readonly ttl: number;
  readonly timeout: number;
  readonly ifAvailable?: boolean;
  readonly identity?: string;
  readonly conflictExitCode?: number;
}

const ABOUT = `
The command finds ETCD_LOCK_NAME, ETCD_LOCK_KEY, ETCD_LOCK_UUID and ETCD_LOCK_TOKEN in its environment. The token grows
with every acquisition: what refuses a lower one than it has seen is safe from a job that lost its lock.

SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 reach the command and its children once. Without a controlling
terminal it has a session of its own; with one it can use that. nohup(1) goes before the command, not before "run", which
would pass a hang-up on; a systemd unit needs KillMode=mixed, else the command gets its signals from systemd, too.

Where the lock can be renewed no more, the command gets SIGTERM when a sixth of the TTL is left, and with its children
SIGKILL when a thirtieth is left: before another can have the lock. Where someone removed its entry, which the next
renewal finds out: SIGKILL at once. On Linux it dies with this process, where setpriv(1) is there; its children may not.
What has another user cannot be ended so: sudo(8) goes before "run", not before the command.
What it leaves in the background goes on without the lock. While it is all stopped (^Z) nothing is renewed: do not let
that last for longer than the TTL.`;

/** `etcd-v2-lock run`: a job under a lock. */
export function runCommand(): Command {
  const command = new Command('run')
    .usage('[options] <name> -- <command> [args...]')
    .description('Run a command while holding a lock, which is kept alive meanwhile. Its exit code is ours.')
    .argument('<name>', 'the lock')
    .argument('<command...>', 'what to run; no shell is in between')
    .option('--shared', 'hold the lock beside others that share it')
    .option('--ttl <seconds>', 'when others may go on after this process has died', number, 30)
    .option('--timeout <seconds>', 'wait no longer than that; 0: no limit', number, 0)
    .addOption(new Option('--if-available', 'do not wait at all').conflicts('timeout'))
    .option(
      '--identity <id>',
      'your name in the queue. Entries that have it are removed first: never run two at a time with one',
    )
    .option('-E, --conflict-exit-code <number>', 'exit code when the lock was not to be had in time', exitCode)
    .addHelpText('after', ABOUT)
    .action(withClient(run));
  return explain(command, {
    endings: ['no', ...ASKING, 'lost', 'timedOut', 'cannotRun', 'notFound', 'signalled'],
    examples: [
      ['etcd-v2-lock run nightly-report -- ./report.sh', 'wait for the lock, then run the script while it is held'],
      ['etcd-v2-lock run backup --if-available -- backup /srv', 'where another machine does it already: not here'],
      ['etcd-v2-lock run index --shared --timeout 60 -- search "some words"', 'beside others that share the lock'],
    ],
  });
}

async function run(client: EtcdClient, command: Command): Promise<number> {
  const [name = '', ...job] = command.args;
  const flags = command.opts<Flags>();
  const request = requestOf(flags);
  checked(() => {
    checkLockName(name);
    checkRequest(request, {});
  });
  check(job[0] ?? '');
  // Not later: nobody is told of a signal while this is found out, and between the lock and the start a job could miss it.
  const wrapper = diesWithUs();
  const relay = new Relay();
  const starter = new Starter();
  try {
    const held = await acquire(new LockManager(client), name, { ...request, signal: relay.ending });
    if (held === null) return taken(name, flags);
    try {
      await relay.ready();
      return relay.endedBy
        ? exitCodeOfSignal(relay.endedBy)
        : await runUnder(held, job, flags.ttl, { relay, wrapper, starter });
    } finally {
      await held.release();
    }
  } catch (error) {
    if (relay.endedBy) return exitCodeOfSignal(relay.endedBy);
    if (flags.conflictExitCode === undefined || !(error instanceof EtcdWatchTimedOut)) throw error;
    complain(error.message);
    return flags.conflictExitCode;
  } finally {
    relay.end();
  }
}

/** @throws {CliError} that shows the command, unless it may be part of a password */
function check(command: string): void {
  try {
    checkCommand(command);
  } catch (error) {
    const behind = process.argv.slice(process.argv.indexOf('run') + 1);
    if (!(error instanceof CliError && mayBePassword(command, behind))) throw error;
    throw new CliError(`cannot run the command ${NOT_SHOWN}`, error.exitCode);
  }
}

function requestOf({ shared = false, ttl, timeout, ifAvailable = false, identity }: Flags): HoldOptions {
  return { mode: shared ? 'shared' : 'exclusive', ttl, timeout, ifAvailable, identity };
}

const acquire = (locks: LockManager, name: string, request: HoldOptions): Promise<OpenHeld | null> =>
  withProgress(locks, name, () => locks.acquire(name, request));

async function runUnder(
  held: OpenHeld,
  command: readonly string[],
  ttl: number,
  { relay, ...how }: { relay: Relay; starter: Starter; wrapper: readonly string[] },
): Promise<number> {
  const job = await Job.start(command, held, { ...how, grouped: !relay.terminal });
  relay.to(job);
  const { code, evicted } = await guard(job, held, ttl);
  if (evicted === undefined) return code;
  complain(`${evicted}; ${command[0] ?? ''} was stopped`);
  return ExitCode.lost;
}

/** As silent as flock(1) where nobody looks on. */
function taken(name: string, { conflictExitCode = ExitCode.no }: Flags): number {
  remark(`${name} is taken`);
  return conflictExitCode;
}
