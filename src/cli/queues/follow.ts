import { sleep } from '../../cancellation.ts';
import { EtcdEventIndexCleared, mayPass } from '../../errors.ts';
import { Backoff, now } from '../../time.ts';
import type { V2Client } from '../../v2/client.ts';
import type { KeyEvent } from '../../v2/keys-api.ts';
import { type QueueSurvey, surveyLock } from '../../v2/locks/survey.ts';
import { LONGEST_WAIT } from '../../v2/requests.ts';
import { apply, diff, type QueueEvent } from './changes.ts';

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
 * the differences. So it reports each new and each removed entry once, except an entry that came and went in between.
 * @throws the signal's reason, and errors that are not temporary
 */
export async function follow(client: V2Client, name: string, follower: Follower, signal: AbortSignal): Promise<never> {
  const path = `${client.lockPrefix}/${name}`;
  const backoff = new Backoff({ first: 100, most: 2000 });
  let survey = await surveyLock(client, name, { signal });
  follower.onQueue(survey, false);
  for (;;) {
    const event = await nextEvent(client, path, { after: survey.index, signal, backoff });
    if (event && event.clusterId === survey.clusterId) {
      const { entries, events } = apply({ name, path }, survey.queue.entries, event);
      survey = { ...survey, queue: { ...survey.queue, entries }, index: event.index };
      follower.onEvents(events, event.index);
      continue;
    }
    const found = await readQueue(client, name, { follower, signal, backoff });
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

/**
 * Waits for the next event. Resolves to undefined if the queue must be read again: after a silent or failed poll, or if events
 * were missed.
 */
async function nextEvent(
  client: V2Client,
  path: string,
  { after, signal, backoff }: RetryOptions & { readonly after: number },
): Promise<KeyEvent | undefined> {
  const startedAt = now();
  try {
    const event = await client.watch(path, { after, recursive: true, signal });
    if (event || now() - startedAt >= LONGEST_WAIT * 1000) {
      backoff.reset();
      return event;
    }
  } catch (error) {
    if (error instanceof EtcdEventIndexCleared) return undefined;
    if (!mayPass(error)) throw error;
  }
  await sleep(backoff.next(), signal);
  return undefined;
}

/** Reads the queue; after a temporary error it retries until the signal aborts. */
async function readQueue(
  client: V2Client,
  name: string,
  { follower, signal, backoff }: RetryOptions & { readonly follower: Follower },
): Promise<QueueSurvey> {
  for (let outage = false; ; outage = true) {
    try {
      const survey = await surveyLock(client, name, { signal });
      if (outage) follower.onRecovery();
      return survey;
    } catch (error) {
      if (!mayPass(error)) throw error;
      if (!outage) follower.onOutage(error as Error);
    }
    await sleep(backoff.next(), signal);
  }
}
