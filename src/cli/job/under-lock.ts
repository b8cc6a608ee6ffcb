import { ignore } from '../../cancellation.ts';
import type { Held } from '../../manager/held.ts';
import type { LockManager } from '../../manager/manager.ts';
import { limitOf } from '../../recipe/attempt.ts';
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
export interface Undertaking {
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
  /** Waits for the lock, until the signal aborts. Resolves to null if the lock is taken and the wait is over. */
  acquire(signal: AbortSignal): Promise<Holding | null>;
}

export const verbosityOf = ({ verbose, quiet }: { readonly verbose?: boolean; readonly quiet?: boolean }): Verbosity =>
  quiet ? 'quiet' : verbose ? 'verbose' : 'normal';

/**
 * Waits for the lock and runs the command while it is held. Resolves to the exit code; to null if the lock was not acquired.
 * @throws {CliError} if the command cannot be run
 * @throws what `acquire` throws
 */
export async function runUnderLock(undertaking: Undertaking): Promise<number | null> {
  const { locks, name, ttl, maxHold, verbosity, acquire } = undertaking;
  check(undertaking);
  surviveHangUp();
  // Created before the relay: this blocks for some milliseconds, and a signal during that time must end this process at once.
  const starter = new Starter();
  const relay = new Relay();
  const stopSteps = verbosity === 'verbose' ? printSteps() : ignore;
  try {
    const holding = await withProgress(locks, name, verbosity, () => acquire(relay.ending));
    if (holding === null) return null;
    const limits = { ttl, maxHold: limitOf(maxHold) };
    try {
      if (relay.endedBy) return exitCodeOfSignal(relay.endedBy);
      return await runCommand(holding.held, undertaking, limits, { relay, starter });
    } finally {
      await holding.release();
    }
  } catch (error) {
    if (relay.endedBy) return exitCodeOfSignal(relay.endedBy);
    throw error;
  } finally {
    relay.end();
    stopSteps();
  }
}

/** @throws {CliError} if the command cannot be run; the message names the command unless it may be part of a password */
function check({ command: [file = ''], subcommand }: Undertaking): void {
  try {
    checkCommand(file);
  } catch (error) {
    const following = process.argv.slice(process.argv.indexOf(subcommand) + 1);
    if (!(error instanceof CliError && mayBePassword(file, following))) throw error;
    throw new CliError(`cannot run the command ${NOT_SHOWN}`, error.exitCode);
  }
}

async function runCommand(
  held: Held,
  { command, verbosity }: Undertaking,
  limits: GuardLimits,
  { relay, starter }: { readonly relay: Relay; readonly starter: Starter },
): Promise<number> {
  const job = await startJob(command, held, starter);
  relay.to(job.family);
  const say = verbosity === 'verbose' ? complain : ignore;
  say(`started the command as process ${job.pid}`);
  const { code, stopped } = await guard(job, held, limits);
  say(`the command ended with exit code ${code}`);
  if (stopped === undefined) return code;
  complain(`${stopped}; ${command[0]} was stopped`);
  return ExitCode.lost;
}
