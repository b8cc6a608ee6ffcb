import { spawnSync } from 'node:child_process';
import type { Held } from '../../manager/held.ts';
import { Family } from './family.ts';
import type { Started, Starter } from './starter.ts';

/** What the job is told of the lock it runs under. */
const environmentOf = ({ name, key, uuid, fencingToken }: Held): Record<string, string> => ({
  ETCD_LOCK_NAME: name,
  ETCD_LOCK_KEY: key,
  ETCD_LOCK_UUID: uuid,
  ETCD_LOCK_TOKEN: String(fencingToken),
});

export interface StartOptions {
  readonly starter: Starter;
  /** What the command is started by, such as {@link diesWithUs}. */
  readonly wrapper: readonly string[];
  /** Whether it gets a session and a process group of its own. */
  readonly grouped: boolean;
}

/** A command that runs under a lock. Its stdin, stdout and stderr are ours; no shell is in between. */
export class Job {
  readonly family: Family;
  /** Its exit code; 128 + n when a signal ended it. */
  readonly ended: Promise<number>;

  private constructor({ pid, ended }: Started, held: Held, grouped: boolean) {
    this.family = new Family({ leader: pid, grouped, mark: `ETCD_LOCK_UUID=${held.uuid}` });
    this.ended = ended;
  }

  /** @throws {CliError} when it cannot be started */
  static async start(
    command: readonly string[],
    held: Held,
    { starter, wrapper, grouped }: StartOptions,
  ): Promise<Job> {
    const env = { ...process.env, ...environmentOf(held) };
    const request = { command: [...wrapper, ...command], env, detached: grouped };
    return new Job(await starter.start(command[0] ?? '', request), held, grouped);
  }
}

/** Linux kills the command when the process that started it has died, where util-linux' setpriv can ask it to. */
export function diesWithUs(): string[] {
  const asking = ['setpriv', '--pdeathsig', 'KILL'] as const;
  const [program, ...args] = asking;
  return spawnSync(program, [...args, 'true'], { stdio: 'ignore' }).status === 0 ? [...asking, '--'] : [];
}
