import { constants } from 'node:os';
import {
  EtcdConnectionFailed,
  EtcdInsufficientPermissions,
  EtcdLockExpired,
  EtcdLockLost,
  EtcdUnusableAnswer,
  EtcdWatchTimedOut,
} from '../errors.ts';

/** What a command ends with: flock(1)'s and timeout(1)'s numbers where they have one, sysexits.h's for the rest. */
export const ExitCode = {
  ok: 0,
  /** The answer is no: the lock is taken, nothing was found, something is wrong with the cluster. */
  no: 1,
  /** The command line cannot be understood, or a value in it not be used (EX_USAGE, as flock). */
  usage: 64,
  /** etcd cannot be reached, or what answers is no etcd that speaks v2 (EX_UNAVAILABLE). */
  unreachable: 69,
  /** The lock was lost, or about to be (EX_TEMPFAIL). */
  lost: 75,
  /** User, password or certificate are refused (EX_NOPERM). */
  refused: 77,
  /** The timeout passed (as timeout). */
  timedOut: 124,
  /** Something else went wrong (as timeout). */
  failed: 125,
  /** The job's command was found, but cannot be run (as timeout). */
  cannotRun: 126,
  /** The job's command was not found (as timeout). */
  notFound: 127,
} as const;

/** Ended by a signal, or on behalf of one: 128 and its number, as shells tell it. */
export const exitCodeOfSignal = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/** Something that only the command line can go wrong with. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Something the user has to mend before the command can be tried again. */
export class UsageError extends CliError {
  constructor(message: string) {
    super(message, ExitCode.usage);
  }
}

/** A subclass comes before its base. */
const codes = [
  [EtcdWatchTimedOut, ExitCode.timedOut],
  [EtcdConnectionFailed, ExitCode.unreachable],
  [EtcdUnusableAnswer, ExitCode.unreachable],
  [EtcdInsufficientPermissions, ExitCode.refused],
  [EtcdLockLost, ExitCode.lost],
  [EtcdLockExpired, ExitCode.lost],
  // What the package says of a value it cannot use, before any request.
  [RangeError, ExitCode.usage],
] as const;

export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode;
  return codes.find(([type]) => error instanceof type)?.[1] ?? ExitCode.failed;
}
