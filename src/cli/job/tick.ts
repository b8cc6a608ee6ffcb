import type { Held } from '../../manager/held.ts';
import { TickAttempt, type TickJob, type TickLimits } from '../../manager/once/attempt.ts';
import { hostClock } from '../../manager/once/clock.ts';
import type { RecordedTick, Tick } from '../../manager/once/tick.ts';
import { complain } from '../streams.ts';

/** The exit code of a command that has failed, so that its tick is recorded as failed. */
class CommandFailed extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`the command exited with ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** The exit code of the command, or the record of the present tick or a later one, if another host has begun that. */
export type TickResult = { readonly exitCode: number } | { readonly taken: RecordedTick };

/**
 * Runs a command for the present tick by the clock of this host, unless another host has begun it. Prints a warning about ticks that
 * were missed or did not end.
 * @param run starts the command and resolves to its exit code
 * @throws the reason why the tick could not be begun
 */
export async function runPresentTick(
  job: Omit<TickJob, 'clock'>,
  limits: TickLimits,
  run: (held: Held, tick: Tick) => Promise<number>,
): Promise<TickResult> {
  const attempt = new TickAttempt({ ...job, clock: hostClock }, job.schedule.present(hostClock.now()), limits);
  const { outcome, recorded, error } = await attempt.run(async (held, tick) => {
    warn(job.name, tick);
    const exitCode = await run(held, tick);
    if (exitCode !== 0) throw new CommandFailed(exitCode);
  });
  if (outcome === 'ran') return { exitCode: 0 };
  if (recorded) return { taken: recorded };
  if (error instanceof CommandFailed) return error;
  throw error;
}

/** Returns the environment variables that describe the tick. */
export const environmentOfTick = ({ at, missed }: Tick): Record<string, string> => ({
  ETCD_LOCK_TICK: at.toISOString(),
  ETCD_LOCK_MISSED: missed === undefined ? '' : String(missed),
});

/** Returns a line about a tick that another host has begun. */
export const takenText = (name: string, recorded: RecordedTick): string =>
  `the tick ${recorded.at.toISOString()} of ${name} was begun by ${hostOf(recorded)}`;

function warn(name: string, { at, missed = 0, previous }: Tick): void {
  if (missed > 0) complain(`missed ticks of ${name} before ${at.toISOString()}, which no host has begun: ${missed}`);
  if (previous?.state !== 'begun') return;
  complain(`the tick ${previous.at.toISOString()} of ${name}, begun by ${hostOf(previous)}, has no recorded end`);
}

const hostOf = ({ by = 'a host without a label' }: RecordedTick): string => by;
