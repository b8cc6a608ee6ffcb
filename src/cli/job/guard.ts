import { pause } from '../../cancellation.ts';
import type { Held } from '../../manager/held.ts';
import { Deadline, now } from '../../time.ts';
import type { Job } from './job.ts';

/** Fraction of the TTL left on the lease at which the job gets SIGTERM. */
const TERMINATE_AT = 1 / 6;
/** Fraction of the TTL left on the lease at which the job gets SIGKILL. */
const KILL_AT = 1 / 30;

/** Milliseconds between two checks whether a terminated job still runs. */
const CHECK_EVERY = 50;

export interface JobEnding {
  /** Exit code of the job; 128 + n if signal n ended it. */
  readonly code: number;
  /** Why the job was stopped; undefined if it ended by itself. */
  readonly stopped: string | undefined;
}

/**
 * Waits until a job ends. If renewals fail, stops the job before anyone else can get the lock: SIGTERM when a sixth of the TTL
 * is left on the lease, and SIGKILL when a thirtieth is left. If the entry is gone, someone else may already hold the lock, and
 * the job gets SIGKILL at once.
 */
export async function guard(job: Job, held: Held, ttl: number): Promise<JobEnding> {
  const ended = new AbortController();
  void job.ended.then(() => ended.abort());
  await leaseBelow(ttl * TERMINATE_AT, held, ended.signal);
  if (ended.signal.aborted) return { code: await job.ended, stopped: undefined };
  const end = new Deadline(now() + Math.max(0, held.expiresIn() - ttl * KILL_AT) * 1000);
  // A stopped job handles SIGTERM only after SIGCONT.
  job.family.send('SIGTERM', 'SIGCONT');
  for (let alive = true; alive && !end.passed && !held.signal.aborted; ) {
    await pause(Math.min(CHECK_EVERY, end.remaining), held.signal);
    // There is no check just before the deadline, because a check takes time.
    alive = end.remaining < CHECK_EVERY || job.family.alive;
  }
  job.family.kill();
  return { code: await job.ended, stopped: reasonOf(held) };
}

/** Waits until at most this number of seconds is left on the lease, the lock is lost, or the job has ended. */
async function leaseBelow(seconds: number, held: Held, ended: AbortSignal): Promise<void> {
  while (!ended.aborted && held.expiresIn() > seconds)
    await pause((held.expiresIn() - seconds) * 1000, held.signal, ended);
}

const reasonOf = ({ name, signal }: Held): string =>
  signal.aborted ? (signal.reason as Error).message : `lock ${name} could not be renewed in time`;
