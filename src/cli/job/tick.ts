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

/** The exit code of the command, or the record of the tick, this one or a later one, that a host had already begun. */
export type TickResult = { readonly exitCode: number } | { readonly taken: RecordedTick };

/**
 * Runs a command for the current tick by the clock of this host, unless a host has already begun it. Prints a warning about ticks that
 * were missed or did not end.
 * @param run starts the command and resolves to its exit code
 * @throws the reason why the tick could not be begun, the error of `run`, or the loss of the lock
 */
export async function runCurrentTick(
  job: Omit<TickJob, 'clock'>,
  limits: TickLimits,
  run: (held: Held, tick: Tick) => Promise<number>,
): Promise<TickResult> {
  const attempt = new TickAttempt({ ...job, clock: hostClock }, job.schedule.current(hostClock.now()), limits);
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

/** Returns a line about a tick that a host had already begun. */
export const takenText = (name: string, recorded: RecordedTick): string =>
  `the command was not run: ${hostOf(recorded)} has already begun the tick ${recorded.at.toISOString()} of ${name}`;

function warn(name: string, { at, missed = 0, previous }: Tick): void {
  const ticks = missed === 1 ? 'the last tick' : `the last ${missed} ticks`;
  if (missed > 0) complain(`no host began ${ticks} of ${name} before ${at.toISOString()}`);
  if (previous?.state !== 'begun') return;
  complain(
    `the tick ${previous.at.toISOString()} of ${name} has no recorded end: ` +
      `${hostOf(previous)} began it, but may have crashed, lost the lock, or failed to reach etcd. Its job may still run`,
  );
}

const hostOf = ({ by = 'a host without a label' }: RecordedTick): string => by;
