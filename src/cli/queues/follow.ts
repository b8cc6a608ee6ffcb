import { followQueue } from '../../recipe/follow.ts';
import type { QueueSurvey, Surveyor } from '../../recipe/survey.ts';
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
 * Follows the queue of a lock until the signal aborts. When changes may have been missed, reports the differences. So it reports
 * each added and each removed entry once, except an entry that was added and removed in between.
 * @throws the signal's reason, any error of the first read, and later errors that are not temporary
 */
export async function follow(
  surveyor: Surveyor,
  name: string,
  { onQueue, onEvents, ...follower }: Follower,
  signal: AbortSignal,
): Promise<void> {
  let before: QueueSurvey | undefined;
  for await (const { survey, change } of followQueue(surveyor, name, { ...follower, signal })) {
    if (!before || before.clusterId !== survey.clusterId) onQueue(survey, before !== undefined);
    else {
      const { entries } = before.queue;
      onEvents(change ? eventsOf(entries, change) : diff(entries, survey.queue.entries), survey.index);
    }
    before = survey;
  }
}
