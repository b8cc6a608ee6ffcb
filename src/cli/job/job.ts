import { EtcdLockLost } from '../../errors.ts';
import type { Held } from '../../manager/held.ts';
import { CliError, ExitCode } from '../exit-codes.ts';
import { ProcessTree } from './processes/process-tree.ts';
import type { Starter } from './starter.ts';
import { hasTerminal } from './terminal.ts';

/** A command that runs under a lock. */
export interface Job {
  /** Process ID of the command. */
  readonly pid: number;
  readonly tree: ProcessTree;
  /** Resolves to the exit code of the command; 128 + n if signal n ended the command. */
  readonly ended: Promise<number>;
}

/**
 * Starts a command under a lock, without a shell. The command shares stdin, stdout and stderr with this process. If there is a
 * controlling terminal, the command also shares the process group: only the foreground process group can use a terminal.
 * @param variables further environment variables
 * @throws {CliError} if the lock is already lost, or the command cannot be started
 */
export async function startJob(
  command: readonly string[],
  held: Held,
  starter: Starter,
  variables: Readonly<Record<string, string>> = {},
): Promise<Job> {
  assertHeld(held, command);
  const grouped = !hasTerminal();
  const env = { ...process.env, ...OF_OUTER_LOCK, ...environmentOf(held), ...variables };
  const { pid, ended } = await starter.start(command, { env, detached: grouped });
  return { pid, tree: new ProcessTree({ root: pid, grouped, mark: `ETCD_LOCK_UUID=${held.uuid}` }), ended };
}

/** This process may have been stopped since it acquired the lock. */
function assertHeld(held: Held, [file]: readonly string[]): void {
  try {
    held.assertHeld();
  } catch (error) {
    if (!(error instanceof EtcdLockLost)) throw error;
    throw new CliError(`${error.message}; ${file} was not started`, ExitCode.lost);
  }
}

/** Variables that an outer `run` or `elect` may have set, and that this one may not set: they would describe another lock. */
const OF_OUTER_LOCK = {
  ETCD_LOCK_TOKEN_V2: undefined,
  ETCD_LOCK_TOKEN_V3: undefined,
  ETCD_LOCK_TICK: undefined,
  ETCD_LOCK_MISSED: undefined,
};

/** Returns the environment variables that describe the lock. */
const environmentOf = ({ name, key, uuid, fencingToken, fencingTokens }: Held): Record<string, string> => ({
  ETCD_LOCK_NAME: name,
  ETCD_LOCK_KEY: key,
  ETCD_LOCK_UUID: uuid,
  ETCD_LOCK_TOKEN: String(fencingToken),
  ...Object.fromEntries(
    Object.entries(fencingTokens).map(([store, token]) => [`ETCD_LOCK_TOKEN_${store.toUpperCase()}`, String(token)]),
  ),
});
