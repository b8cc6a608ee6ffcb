import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { Held } from '../../lock/held.ts';
import { CliError, ExitCode, exitCodeOfSignal } from '../exit-codes.ts';
import { Family } from './family.ts';

/** What the job is told of the lock it runs under. */
const environmentOf = ({ name, key, uuid, fencingToken }: Held): Record<string, string> => ({
  ETCD_LOCK_NAME: name,
  ETCD_LOCK_KEY: key,
  ETCD_LOCK_UUID: uuid,
  ETCD_LOCK_TOKEN: String(fencingToken),
});

/** A command that runs under a lock. Its stdin, stdout and stderr are ours; no shell is in between. */
export class Job {
  readonly family: Family;
  /** Its exit code; 128 + n when a signal ended it. */
  readonly ended: Promise<number>;

  private constructor(child: ChildProcess, family: Family) {
    this.family = family;
    this.ended = once(child, 'exit').then(([code, signal]) => code ?? exitCodeOfSignal(signal));
  }

  /**
   * @param wrapper what the command is started by, such as {@link diesWithUs}
   * @param grouped whether it gets a session and a process group of its own
   * @throws {CliError} when it cannot be started
   */
  static async start(
    command: readonly string[],
    held: Held,
    { wrapper, grouped }: { wrapper: readonly string[]; grouped: boolean },
  ): Promise<Job> {
    const environment = environmentOf(held);
    const [program = '', ...args] = [...wrapper, ...command];
    const child = spawn(program, args, {
      detached: grouped,
      env: { ...process.env, ...environment },
      stdio: 'inherit',
    });
    const { pid } = child;
    if (pid === undefined) {
      const [error] = (await once(child, 'error')) as [NodeJS.ErrnoException];
      throw new CliError(
        `${command[0]} cannot be run: ${error.message}`,
        error.code === 'ENOENT' ? ExitCode.notFound : ExitCode.cannotRun,
      );
    }
    const mark = `ETCD_LOCK_UUID=${held.uuid}`;
    return new Job(child, new Family({ leader: pid, grouped, mark }));
  }
}

/** Linux kills the command when the process that started it has died, where util-linux' setpriv can ask it to. */
export function diesWithUs(): string[] {
  const asking = ['setpriv', '--pdeathsig', 'KILL'] as const;
  const [program, ...args] = asking;
  return spawnSync(program, [...args, 'true'], { stdio: 'ignore' }).status === 0 ? [...asking, '--'] : [];
}
