import type { Deadline } from '../../base/time.ts';
import type { EndpointFacts, Outcome } from './facts.ts';
import { outcomeOf } from './outcomes.ts';

/** Maximum number of reads. Their median duration is reported. */
const READS = 3;

/**
 * Measures several reads, one after the other.
 * @param readOnce makes one read, and passes its duration in milliseconds to `took`
 * @param least seconds that must remain before another read starts, so that the deadline does not abort the read
 */
export async function measureReads(
  readOnce: (took: (milliseconds: number) => void) => Promise<void>,
  deadline: Deadline,
  least: number,
): Promise<Pick<EndpointFacts, 'read' | 'quorumReadMs'>> {
  const times: number[] = [];
  let read: Outcome;
  do read = await outcomeOf(readOnce((time) => times.push(time)));
  while (read.is === 'done' && times.length < READS && deadline.remaining > least * 1000);
  const [median] = times.sort((a, b) => a - b).slice(Math.floor(times.length / 2));
  return { read, quorumReadMs: read.is === 'done' ? median : undefined };
}
