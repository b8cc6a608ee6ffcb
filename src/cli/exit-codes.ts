import { constants } from 'node:os';
import {
  EtcdConnectionFailed,
  EtcdInsufficientPermissions,
  EtcdLockLimitDiffers,
  EtcdLockLost,
  EtcdLockTimeout,
  EtcdTlsFailed,
  EtcdUnusableAnswer,
} from '../errors.ts';

/** Exit codes of all commands. The numbers follow flock(1) and timeout(1), and sysexits.h for the rest. */
export const ExitCode = {
  ok: 0,
  no: 1,
  /** EX_USAGE, as in flock. */
  usage: 64,
  /** EX_UNAVAILABLE. */
  unreachable: 69,
  /** EX_TEMPFAIL. */
  lost: 75,
  /** EX_NOPERM. */
  refused: 77,
  timedOut: 124,
  failed: 125,
  cannotRun: 126,
  notFound: 127,
} as const;

/** Meaning of each exit code, for the help texts and `docs/cli.md`. */
export const exitReasons = {
  ok: 'success',
  no: 'negative result: lock taken, entry not removed, or failure found by doctor',
  usage: 'invalid command line or option value',
  unreachable: 'cannot connect to etcd, or the server does not have the API of your locks',
  lost: 'lock lost or about to be lost, or --max-hold passed',
  refused: 'wrong or missing credentials or certificate, TLS failed, or permission denied',
  timedOut: 'timed out while waiting for the lock, also if etcd could not be reached until then',
  failed: 'any other error',
  cannotRun: 'command found, but cannot be executed',
  notFound: 'command not found',
  signalled: 'terminated by signal n',
} as const satisfies Record<keyof typeof ExitCode | 'signalled', string>;

export type ExitReason = keyof typeof exitReasons;

/** Returns an exit code as the help texts show it; `128+n` for signals. */
export const codeOf = (reason: ExitReason): string => (reason === 'signalled' ? '128+n' : String(ExitCode[reason]));

/** Returns 128 + the number of the signal, as shells do. */
export const exitCodeOfSignal = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/** An error that determines the exit code. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** An invalid command line, option value or file: exit code 64. */
export class UsageError extends CliError {
  constructor(message: string) {
    super(message, ExitCode.usage);
  }
}

/**
 * Runs a check of values from the command line.
 * @throws {UsageError} instead of a `RangeError` or `TypeError`. Elsewhere, these errors are bugs of this package.
 */
export function checked<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) throw new UsageError(error.message);
    throw error;
  }
}

/** The first class that matches is used, so subclasses come before their base class. */
const codes = [
  [EtcdLockTimeout, ExitCode.timedOut],
  [EtcdTlsFailed, ExitCode.refused],
  [EtcdConnectionFailed, ExitCode.unreachable],
  [EtcdUnusableAnswer, ExitCode.unreachable],
  [EtcdInsufficientPermissions, ExitCode.refused],
  [EtcdLockLost, ExitCode.lost],
  [EtcdLockLimitDiffers, ExitCode.usage],
] as const;

/** Returns the exit code for an error; 125 if no other code applies. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode;
  return codes.find(([type]) => error instanceof type)?.[1] ?? ExitCode.failed;
}

/**
 * Returns the error with this exit code, if it is a timeout while another held the lock, and the code is given. Not in an outage:
 * cron must not treat a job as done if no host could run it.
 */
export function asConflict(error: unknown, conflictExitCode: number | undefined): unknown {
  const isConflict = error instanceof EtcdLockTimeout && error.reason === 'held';
  if (conflictExitCode === undefined || !isConflict) return error;
  return new CliError(error.message, conflictExitCode, { cause: error });
}
