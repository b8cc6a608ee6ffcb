import { sleep } from '../../cancellation.ts';
import { mayPass } from '../../errors.ts';
import type { QueueChange, QueueSurvey, Surveyor } from '../../recipe/survey.ts';
import { Backoff } from '../../time.ts';
import { diff, eventsOf, type QueueEvent } from './changes.ts';

/** Callbacks for the changes of a queue. */
export interface Follower {
  /** Called with the whole queue: at the start, and after the cluster was replaced by another. */
  onQueue(survey: QueueSurvey, clusterChanged: boolean): void;
  onEvents(events: readonly QueueEvent[], index: number): void;
  /** Called once per outage of etcd. */
  onOutage(error: Error): void;
  onRecovery(): void;
}

/**
 * Follows the queue of a lock until the signal aborts. Reads the whole queue again when events may have been missed, and reports
 * the differences. So it reports each added and each removed entry once, except an entry that was added and removed in between.
 * @throws the signal's reason, and errors that are not temporary
 */
export async function follow(
  surveyor: Surveyor,
  name: string,
  follower: Follower,
  signal: AbortSignal,
): Promise<never> {
  const backoff = new Backoff({ first: 100, most: 2000 });
  let survey = await surveyor.lock(name, { signal });
  follower.onQueue(survey, false);
  for (;;) {
    const changes = await nextChanges(surveyor, survey, { signal, backoff });
    for (const change of changes ?? []) {
      follower.onEvents(eventsOf(survey.queue.entries, change), change.index);
      survey = { ...survey, queue: { ...survey.queue, entries: change.entries }, index: change.index };
    }
    if (changes) continue;
    const found = await readQueue(surveyor, name, { follower, signal, backoff });
    if (found.clusterId === survey.clusterId)
      follower.onEvents(diff(survey.queue.entries, found.queue.entries), found.index);
    else follower.onQueue(found, true);
    survey = found;
  }
}

interface RetryOptions {
  readonly signal: AbortSignal;
  readonly backoff: Backoff;
}

/** Waits for the next changes. Resolves to undefined if the queue must be read again: also after a failed wait. */
async function nextChanges(
  surveyor: Surveyor,
  survey: QueueSurvey,
  { signal, backoff }: RetryOptions,
): Promise<readonly QueueChange[] | undefined> {
  try {
    const changes = await surveyor.next(survey, { signal });
    backoff.reset();
    return changes;
  } catch (error) {
    if (!mayPass(error)) throw error;
  }
  await sleep(backoff.next(), signal);
  return undefined;
}

/** Reads the queue; after a temporary error it retries until the signal aborts. */
async function readQueue(
  surveyor: Surveyor,
  name: string,
  { follower, signal, backoff }: RetryOptions & { readonly follower: Follower },
): Promise<QueueSurvey> {
  for (let outage = false; ; outage = true) {
    try {
      const survey = await surveyor.lock(name, { signal });
      if (outage) follower.onRecovery();
      return survey;
    } catch (error) {
      if (!mayPass(error)) throw error;
      if (!outage) follower.onOutage(error as Error);
    }
    await sleep(backoff.next(), signal);
  }
}
