import { ignore, pause, sleep } from '../../base/cancellation.ts';
import { Deadline } from '../../base/time.ts';
import type { Held } from '../../manager/held.ts';
import type { Job } from './job.ts';

/** Fraction of the TTL left on the lease at which the job gets SIGTERM. */
const TERMINATE_AT = 1 / 6;
/** Fraction of the TTL left on the lease at which the job gets SIGKILL. */
const KILL_AT = 1 / 30;

/** Milliseconds between two checks whether a terminated job still runs. */
const CHECK_EVERY = 50;

export interface GuardLimits {
  /** TTL of the lock in seconds. */
  readonly ttl: number;
  /** When the job must be stopped although the lock is held. */
  readonly maxHold: Deadline;
}

export interface JobEnding {
  /** Exit code of the job; 128 + n if signal n ended it. */
  readonly code: number;
  /** Why the job was stopped; undefined if it ended by itself. */
  readonly stopped: string | undefined;
}

/**
 * Waits until a job ends. If renewals fail, stops the job before anyone else can get the lock: it gets SIGTERM when TTL/6
 * remains until the lease's deadline, and all its processes get SIGKILL when TTL/30 remains. The deadline is TTL/10 before the entry
 * expires. So 4/15 and then 2/15 of the TTL remain until the entry expires; the help of `run` shows these. If the entry is gone, someone else may already hold the lock, and the job gets
 * SIGKILL at once. When `maxHold` has passed, the job gets SIGTERM. It may then run for the time left on the lease at that moment,
 * minus a thirtieth of the TTL. After that, it gets SIGKILL.
 */
export async function guard(job: Job, held: Held, { ttl, maxHold }: GuardLimits): Promise<JobEnding> {
  const ended = new AbortController();
  const onEnd = (): void => ended.abort();
  void job.ended.then(onEnd, onEnd);
  await leaseBelow(ttl * TERMINATE_AT, held, maxHold, ended.signal);
  if (ended.signal.aborted) return { code: await job.ended, stopped: undefined };
  const isOverdue = maxHold.passed;
  const end = Deadline.after(Math.max(0, held.expiresIn() - ttl * KILL_AT));
  // A stopped job handles SIGTERM only after SIGCONT.
  job.tree.send('SIGTERM', 'SIGCONT');
  for (let alive = true; alive && !end.passed && !held.signal.aborted; ) {
    // Not `pause`, which does not keep this process alive: the command may have ended before its children.
    await sleep(Math.min(CHECK_EVERY, end.remaining), held.signal).catch(ignore);
    // There is no check just before the deadline, because a check takes time.
    alive = end.remaining < CHECK_EVERY || job.tree.alive;
  }
  job.tree.kill();
  return { code: await job.ended, stopped: reasonOf(held, isOverdue) };
}

/** Waits until at most this number of seconds is left on the lease, the lock is lost, `limit` passes, or the job has ended. */
async function leaseBelow(seconds: number, held: Held, limit: Deadline, ended: AbortSignal): Promise<void> {
  while (!ended.aborted && !limit.passed && held.expiresIn() > seconds)
    await pause(Math.min((held.expiresIn() - seconds) * 1000, limit.remaining), held.signal, ended);
}

function reasonOf({ name, signal }: Held, isOverdue: boolean): string {
  if (signal.aborted) return (signal.reason as Error).message;
  return isOverdue ? `lock ${name} has reached --max-hold` : `lock ${name} could not be renewed in time`;
}
