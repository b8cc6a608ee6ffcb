import { type Command, Option } from 'commander';
import { ignore } from '../../base/cancellation.ts';
import type { EtcdClient } from '../../client.ts';
import { LockManager } from '../../manager/manager.ts';
import type { TickJob, WaitLimits } from '../../manager/once/attempt.ts';
import { type Schedule, scheduleOf } from '../../manager/once/schedule.ts';
import { checkRequest, type HoldOptions } from '../../manager/options.ts';
import { number } from '../arguments.ts';
import { clientOptions } from '../connection.ts';
import { asConflict, checked, ExitCode } from '../exit-codes.ts';
import { ASKING, addDetails, explain } from '../help.ts';
import {
  conflictExitCodeOption,
  IDENTITY_FLAG,
  ifAvailableOption,
  LABEL_FLAG,
  limitOption,
  quietOption,
  SHARED_FLAG,
  TTL_FLAG,
  VERBOSE_FLAG,
} from '../job/options.ts';
import { RunningCommand } from '../job/running-command.ts';
import { environmentOfTick, runCurrentTick, takenText } from '../job/tick.ts';
import { byHolding, type RunContext, releasing, runUnderLock, verbosityOf } from '../job/under-lock.ts';
import { withClient } from '../session.ts';
import { complain, remark } from '../streams.ts';

interface Flags {
  readonly shared?: boolean;
  readonly limit?: number;
  readonly ttl: number;
  readonly timeout: number;
  readonly ifAvailable?: boolean;
  readonly identity?: string;
  readonly holdAtLeast: number;
  readonly maxHold: number;
  readonly label?: string;
  readonly once?: string;
  readonly timeZone?: string;
  readonly conflictExitCode?: number;
  readonly verbose?: boolean;
  readonly quiet?: boolean;
}

const ABOUT = `
Where its options end:
- The options of "run" end at "--", or else at the command: the first word after the name that is neither an option nor its
  value. All words from there on belong to the command, even those that look like options of "run".

Environment of the command:
- It contains ETCD_LOCK_NAME, ETCD_LOCK_KEY, ETCD_LOCK_UUID and ETCD_LOCK_TOKEN.
- The token is a fencing token: that of an exclusive lock is greater than all tokens before it. A service that rejects a
  token lower than one it has seen is safe from a command that lost its lock. Do not use the token like that with
  --shared or --limit: such holders work at the same time.
- ETCD_LOCK_TOKEN_V2 contains the token of a lock on v2, ETCD_LOCK_TOKEN_V3 that of a lock on v3; with --api both, both
  are set.

Messages on stderr:
- A wait longer than a second is reported with the holder. On a terminal, it is a status line. Otherwise, it is one line
  when it is noticed and one when the lock is acquired.
- --verbose also prints each change of the queue position, the key, the fencing token, and the start and end of the command.
- --quiet prints errors and warnings only.

Signals:
- SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are relayed to the command and its children.
- A terminal sends ^C and ^\\ to the command itself. So SIGINT and SIGQUIT are not relayed while the command is in the
  foreground of a terminal. To send one of them with kill(1), name the process group: kill -INT -- -PGID.
- On a terminal, any other signal for the whole process group reaches the command twice.
- Without a controlling terminal, the command runs in its own session (setsid(2)).
- Put nohup(1) before the command. Before "run" it does not help, because "run" relays SIGHUP.
- Set KillMode=mixed in a systemd unit. Otherwise systemd also sends its signals to the command.

Lost lock:
- If the lock cannot be renewed, the command and its children get SIGTERM when 4/15 of the TTL is left (8 of 30 seconds).
  They get SIGKILL when 2/15 is left (4 of 30 seconds), before anyone else can get the lock.
- If someone removes the entry, "run" notices it at the next renewal; on etcd v3 usually within a second. Then the command
  and its children get SIGKILL at once.
- If the lock is lost before the command starts, for example while "run" is stopped, the command is not started.
- When --max-hold has passed, the command and its children get SIGTERM. They may then run for the part of the TTL that is
  left at that moment, minus 2/15 of the TTL (16 to 26 of 30 seconds). After that, they get SIGKILL. The lock is
  released when they have ended.

Scheduled jobs:
- With --once, cron starts "run" on each host, and at most one host runs the command per tick. The ticks of an interval such
  as 15m or 1h are its multiples since 1970-01-01T00:00:00Z; those of a cron expression are in UTC, or in --time-zone. Use
  the schedule of the crontab. As cron uses local time, set --time-zone to the time zone of cron for a cron expression.
  The clocks of the hosts must differ by less than a day.
- The tick is recorded in etcd before the command starts. If the host crashes, the command is not run again for this tick.
  The next run prints a warning then, and also if ticks were missed because no host could begin them.
- If the tick has already been begun, "run" exits with 0 immediately, or with --conflict-exit-code. If the lock is held until
  the next tick is due, it exits with 124.
- ETCD_LOCK_TICK contains the time of the tick, and ETCD_LOCK_MISSED the number of missed ticks; it is empty if unknown.
- With --if-available and --hold-at-least, only one of several hosts runs a job that all of them start at about the
  same time, unless that host crashes. Choose a time longer than the difference between the starts on the hosts, and
  shorter than the interval between two runs. "run" does not wait until this time has passed: the entry stays in the
  queue, and expires then. If "run" is killed, the entry expires when the TTL has passed since its last renewal.

Waiting:
- The entry in the queue may expire or be removed while "run" waits, for example because etcd was down for longer than
  the TTL. Then "run" queues up again at the end of the queue, until --timeout has passed.
- With --identity, "run" gives up if its entry is removed before it expires: another process may have the same identity.

Limits:
- If "run" is killed, Linux kills the command too, provided that setpriv(1) is installed.
- The command gets stdin, stdout and stderr, but no other open file of the shell.
  The children of the command may continue.
- Processes that the command leaves in the background continue without the lock.
- While "run" is stopped (^Z), the lock is not renewed. Continue "run" within two fifths of the TTL (12 of 30 seconds).
  Later, it may stop the command. With a TTL of less than 3 seconds, these fractions are smaller.
- As PID 1 of a container, "run" does not reap orphaned processes: they remain as zombies until it ends. Use an init, for
  example with "docker run --init".
- "run" finds the children of the command in /proc. After "unshare --pid --fork" without --mount-proc, /proc does not show
  the PID namespace of "run". Then only the command and its process group are stopped, on a terminal only the
  command. The exit code of "run" is then 0 if a real-time signal ended the command.
- "run" cannot stop processes of another user. Put sudo(8) before "run", not before the command.`;

/** `etcd-v2-lock run`: runs a command while holding a lock. */
export function runCommand(): Command {
  const command = new RunningCommand('run')
    .usage('[options] <name> -- <command> [args...]')
    .description(
      "Run a command while holding a lock, which is renewed until the command ends. Exits with the command's exit code.",
    )
    .argument('<name>', 'name of the lock')
    .argument('<command...>', 'command to run, without a shell')
    .option(...SHARED_FLAG)
    .addOption(limitOption())
    .option(...TTL_FLAG)
    .option(
      '--timeout <seconds>',
      'maximum seconds to wait for the lock; 0: no limit. If etcd cannot be reached at the end, "run" exits up to two seconds later, and its entry stays in the queue until its TTL has passed',
      number,
      0,
    )
    .addOption(ifAvailableOption())
    .option(...IDENTITY_FLAG)
    .option(
      '--hold-at-least <seconds>',
      'keep the lock for at least this long, even if the command ends earlier',
      number,
      0,
    )
    .addOption(
      new Option(
        '--once <every>',
        'run only if no host, this one included, has begun the current tick of this schedule: an interval such as 30s, 15m, 1h or 1d, or a cron expression. Not with --shared, --limit, --if-available or --hold-at-least',
      ).conflicts(['shared', 'limit', 'ifAvailable', 'holdAtLeast']),
    )
    .option('--time-zone <zone>', 'time zone of the cron expression of --once, such as Europe/Berlin (default: UTC)')
    .option('--max-hold <seconds>', 'stop the command when the lock has been held this long; 0: no limit', number, 0)
    .option(...LABEL_FLAG)
    .addOption(
      conflictExitCodeOption(
        'the lock is taken, the tick has already been begun, or the timeout passes while another holds the lock',
      ),
    )
    .option(...VERBOSE_FLAG)
    .addOption(quietOption())
    .action(withClient(run, clientOptions));
  addDetails(command, ABOUT);
  return explain(command, {
    exitReasons: ['no', ...ASKING, 'lost', 'timedOut', 'cannotRun', 'notFound', 'signalled'],
    meanings: { no: 'lock taken, with --if-available' },
    examples: [
      ['etcd-v2-lock run nightly-report -- ./report.sh', 'wait for the lock, then run the script while holding it'],
      ['etcd-v2-lock run backup --if-available -- backup /srv', 'do nothing if another machine already runs it'],
      [
        'etcd-v2-lock run report --once 1h -- ./report.sh',
        'from cron on several hosts: at most one of them runs the script each hour',
      ],
      [
        'etcd-v2-lock run index --shared --timeout 60 -- search "some words"',
        'run at the same time as others that use --shared',
      ],
      [
        'etcd-v2-lock run encoder --limit 3 -- ./encode.sh video.mov',
        'run at most three of them at the same time, on all hosts together',
      ],
    ],
  });
}

async function run(client: EtcdClient, command: Command): Promise<number> {
  const [name = '', ...job] = command.args;
  const flags = command.opts<Flags>();
  const { ttl, maxHold, conflictExitCode } = flags;
  const request = requestOf(flags);
  const { label, schedule } = checked(() => {
    client.store.queue(name);
    return { ...checkRequest({ ...request, maxHold }, {}), schedule: scheduleFor(client, name, flags) };
  });
  const locks = new LockManager(client);
  const acquire = (signal: AbortSignal, limits: Partial<WaitLimits> = {}) =>
    locks.acquire(name, { ...request, signal, ...limits });
  const onceHeld = byHolding(async (signal) => {
    const held = await acquire(signal);
    return held && { held, release: () => held.release() };
  });
  const oncePerTick = async ({ signal, waiting, run }: RunContext, schedule: Schedule): Promise<number> => {
    const lock: TickJob['lock'] = async (limits, work) => {
      const held = await waiting(() => acquire(signal, limits));
      if (held) await releasing(held, () => work(held));
    };
    const job = { store: client.store, name, label, schedule, lock };
    const result = await runCurrentTick(job, { signal, timeout: flags.timeout }, (held, tick) =>
      run(held, environmentOfTick(tick)),
    );
    return 'taken' in result ? notRun(takenText(name, result.taken), flags, ExitCode.ok) : result.exitCode;
  };
  const acquireAndRun = schedule ? (context: RunContext) => oncePerTick(context, schedule) : onceHeld;
  const how = { subcommand: 'run', ttl, maxHold, verbosity: verbosityOf(flags) };
  try {
    return (
      (await runUnderLock({ locks, name, command: job, ...how, acquireAndRun })) ??
      notRun(`lock ${name} is taken`, flags, ExitCode.no)
    );
  } catch (error) {
    throw asConflict(error, conflictExitCode);
  }
}

/** Returns the request for the lock. It has no `maxHold`, because the lock must stay held until the command has been stopped. */
function requestOf({
  shared = false,
  limit,
  ttl,
  timeout,
  ifAvailable = false,
  identity,
  label,
  holdAtLeast,
}: Flags): HoldOptions {
  return { mode: shared ? 'shared' : 'exclusive', limit, ttl, timeout, ifAvailable, identity, label, holdAtLeast };
}

/**
 * Returns the schedule of `--once`; undefined without it.
 * @throws {TypeError | RangeError} if it is invalid, or with `--api both`
 */
function scheduleFor(client: EtcdClient, name: string, { once, timeZone }: Flags): Schedule | undefined {
  if (once === undefined && timeZone !== undefined) throw new TypeError('--time-zone needs --once');
  if (once === undefined) return undefined;
  client.store.marker(name);
  return scheduleOf(once, timeZone, { every: '--once', timeZone: '--time-zone' });
}

/** Returns the exit code if the command does not run. Prints why with --verbose, or on a terminal without --quiet; else silent. */
function notRun(why: string, { conflictExitCode, verbose, quiet }: Flags, otherwise: number): number {
  const print = verbose ? complain : quiet ? ignore : remark;
  print(why);
  return conflictExitCode ?? otherwise;
}
