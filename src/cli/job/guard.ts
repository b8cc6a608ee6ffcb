import { pause } from '../../cancellation.ts';
import type { Held } from '../../manager/held.ts';
import { Deadline, now } from '../../time.ts';
import type { Job } from './job.ts';

/** What has to be left of the lease for the job to go on, as a part of the TTL, */
const NOTICE = 1 / 6;
/** and for it to be there at all. */
const LAST = 1 / 30;

/** Milliseconds between two looks at what the job left running. */
const LOOK = 50;

export interface JobEnding {
  /** Its exit code; 128 + n when a signal ended it. */
  readonly code: number;
  /** Why it had to end, if it had: it was sent SIGTERM, and SIGKILL where it did not go. */
  readonly evicted: string | undefined;
}

/**
 * Waits for the end of a job, and sees to it that it comes before another can have the lock. Where no renewal succeeds,
 * the job gets SIGTERM while a sixth of the TTL is left of the lease, and SIGKILL while a thirtieth is left. Where the
 * entry is found gone, another may have the lock already: SIGKILL at once.
 */
export async function guard(job: Job, held: Held, ttl: number): Promise<JobEnding> {
  const over = new AbortController();
  void job.ended.then(() => over.abort());
  await leaseBelow(ttl * NOTICE, held, over.signal);
  if (over.signal.aborted) return { code: await job.ended, evicted: undefined };
  const end = new Deadline(now() + Math.max(0, held.expiresIn() - ttl * LAST) * 1000);
  // A stopped one could not obey.
  job.family.send('SIGTERM', 'SIGCONT');
  for (let alive = true; alive && !end.passed && !held.signal.aborted; ) {
    await pause(Math.min(LOOK, end.remaining), held.signal);
    // A look takes a while: none when the time is nearly up.
    alive = end.remaining < LOOK || job.family.alive;
  }
  job.family.kill();
  return { code: await job.ended, evicted: reasonOf(held) };
}

/** Resolves when that many seconds are left, at once when it is lost, and when the job is over. */
async function leaseBelow(seconds: number, held: Held, over: AbortSignal): Promise<void> {
  while (!over.aborted && held.expiresIn() > seconds)
    await pause((held.expiresIn() - seconds) * 1000, held.signal, over);
}

const reasonOf = ({ name, signal }: Held): string =>
  signal.aborted ? (signal.reason as Error).message : `${name} could not be renewed, and would have been lost soon`;
