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
  no: 1,
  /** EX_USAGE, as flock. */
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

/** What each means, for the help and the manual. */
export const endings = {
  ok: 'all is well',
  no: 'the answer is no: the lock is taken, nothing was found, something is wrong',
  usage: 'the command line cannot be understood, or a value in it not be used',
  unreachable: 'no etcd can be reached, or what answers has no v2 API',
  lost: 'the lock was lost, or was about to be',
  refused: 'user, password or certificate are refused',
  timedOut: 'the timeout passed',
  failed: 'something else went wrong',
  cannotRun: 'the command to run was found, but cannot be run',
  notFound: 'the command to run was not found',
  signalled: 'ended by signal n',
} as const satisfies Record<keyof typeof ExitCode | 'signalled', string>;

export type Ending = keyof typeof endings;

/** The number of an ending, or what it is made of. */
export const codeOf = (ending: Ending): string => (ending === 'signalled' ? '128+n' : String(ExitCode[ending]));

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

/**
 * Runs a check of values from the command line.
 * @throws {UsageError} for a value that the package refuses. Elsewhere such an error is a defect, not bad usage.
 */
export function checked<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) throw new UsageError(error.message);
    throw error;
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
] as const;

export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode;
  return codes.find(([type]) => error instanceof type)?.[1] ?? ExitCode.failed;
}
