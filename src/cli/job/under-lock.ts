import { ignore } from '../../base/cancellation.ts';
import type { Held } from '../../manager/held.ts';
import type { LockManager } from '../../manager/manager.ts';
import { deadlineUnlessZero } from '../../recipe/attempt.ts';
import { CliError, ExitCode, exitCodeOfSignal } from '../exit-codes.ts';
import { mayBePassword, NOT_SHOWN } from '../secrets.ts';
import { complain } from '../streams.ts';
import { checkCommand } from './command.ts';
import { type GuardLimits, guard } from './guard.ts';
import { startJob } from './job.ts';
import { type Verbosity, withProgress } from './progress.ts';
import { Relay } from './relay.ts';
import { Starter } from './starter.ts';
import { printSteps } from './steps.ts';
import { surviveHangUp } from './terminal.ts';

/** A lock held for a command. */
export interface Holding {
  readonly held: Held;
  release(): Promise<unknown>;
}

/** A command to run under a lock. */
export interface LockedCommand {
  readonly locks: LockManager;
  /** Name of the lock. */
  readonly name: string;
  readonly command: readonly string[];
  /** Name of the subcommand on the command line. */
  readonly subcommand: string;
  /** TTL of the lock in seconds. */
  readonly ttl: number;
  /** Seconds after which the command is stopped although the lock is held; 0: no limit. */
  readonly maxHold: number;
  readonly verbosity: Verbosity;
  /** Waits for the lock and runs the command. Resolves to the exit code; to null if the lock was not acquired. */
  readonly acquireAndRun: (context: RunContext) => Promise<number | null>;
}

/** What {@link LockedCommand.acquireAndRun} uses. */
export interface RunContext {
  /** Aborts when the user ends the wait. */
  readonly signal: AbortSignal;
  /** Reports the progress of a wait for the lock, which resolves to null if the lock was not acquired. */
  readonly waiting: <T>(wait: () => Promise<T | null>) => Promise<T | null>;
  /**
   * Runs the command under the lock. Resolves to the exit code.
   * @param environment further environment variables of the command
   */
  readonly run: (held: Held, environment?: Readonly<Record<string, string>>) => Promise<number>;
}

/**
 * Returns a {@link LockedCommand.acquireAndRun} that acquires the lock and runs the command once.
 * @param acquire resolves to null if the lock was not acquired
 */
export const byHolding =
  (acquire: (signal: AbortSignal) => Promise<Holding | null>): LockedCommand['acquireAndRun'] =>
  async ({ signal, waiting, run }) => {
    const holding = await waiting(() => acquire(signal));
    return holding && releasing(holding, () => run(holding.held));
  };

/** Node can only reap its own children. */
const AS_INIT =
  'running as PID 1, which cannot reap orphaned processes: they remain as zombies. Use an init, as with "docker run --init"';

/** Does the work, then releases the lock. */
export async function releasing<T>(holding: Pick<Holding, 'release'>, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    await holding.release();
  }
}

export const verbosityOf = ({ verbose, quiet }: { readonly verbose?: boolean; readonly quiet?: boolean }): Verbosity =>
  quiet ? 'quiet' : verbose ? 'verbose' : 'normal';

/**
 * Waits for the lock and runs the command while it is held. Resolves to the exit code; to null if the lock was not acquired.
 * @throws {CliError} if the command cannot be run
 * @throws what `acquireAndRun` throws
 */
export async function runUnderLock(lockedCommand: LockedCommand): Promise<number | null> {
  const { locks, name, ttl, maxHold, verbosity, acquireAndRun } = lockedCommand;
  check(lockedCommand);
  if (process.pid === 1 && verbosity !== 'quiet') complain(AS_INIT);
  surviveHangUp();
  // Created before the relay: this blocks for some milliseconds, and a signal during that time must end this process at once.
  const starter = new Starter();
  const relay = new Relay();
  const stopSteps = verbosity === 'verbose' ? printSteps() : ignore;
  try {
    return await acquireAndRun({
      signal: relay.ending,
      waiting: (wait) => withProgress(locks, name, verbosity, wait),
      run: async (held, environment) => {
        if (relay.endedBy) return exitCodeOfSignal(relay.endedBy);
        const limits = { ttl, maxHold: deadlineUnlessZero(maxHold) };
        return runCommand(held, lockedCommand, limits, { relay, starter, environment });
      },
    });
  } catch (error) {
    if (relay.endedBy) return exitCodeOfSignal(relay.endedBy);
    throw error;
  } finally {
    relay.end();
    stopSteps();
  }
}

/** @throws {CliError} if the command cannot be run; the message names the command unless it may be part of a password */
function check({ command: [file = ''], subcommand }: LockedCommand): void {
  try {
    checkCommand(file);
  } catch (error) {
    const following = process.argv.slice(process.argv.indexOf(subcommand) + 1);
    if (!(error instanceof CliError && mayBePassword(file, following))) throw error;
    throw new CliError(`cannot run the command ${NOT_SHOWN}`, error.exitCode);
  }
}

interface Running {
  readonly relay: Relay;
  readonly starter: Starter;
  readonly environment: Readonly<Record<string, string>> | undefined;
}

async function runCommand(
  held: Held,
  { command, verbosity }: LockedCommand,
  limits: GuardLimits,
  { relay, starter, environment }: Running,
): Promise<number> {
  const job = await startJob(command, held, starter, environment);
  relay.to(job.tree);
  const say = verbosity === 'verbose' ? complain : ignore;
  say(`started the command as process ${job.pid}`);
  const { code, stopped } = await guard(job, held, limits);
  say(`the command ended with exit code ${code}`);
  if (stopped === undefined) return code;
  complain(`${stopped}; ${command[0]} was stopped`);
  return ExitCode.lost;
}
