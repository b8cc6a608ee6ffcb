import { sleep } from '../../cancellation.ts';
import { EtcdEventIndexCleared, mayPass } from '../../errors.ts';
import { Backoff, now } from '../../time.ts';
import type { EtcdClient } from '../../v2/client.ts';
import type { KeyEvent } from '../../v2/keys-api.ts';
import { type QueueSurvey, surveyLock } from '../../v2/locks/survey.ts';
import { LONGEST_WAIT } from '../../v2/requests.ts';
import { apply, diff, type Happening } from './changes.ts';

/** Who is told what becomes of a queue. */
export interface Follower {
  /** The queue as it is, at first and once another cluster has taken the place of the one before. */
  begins(survey: QueueSurvey, anew: boolean): void;
  happened(happenings: readonly Happening[], index: number): void;
  /** etcd does not answer; once for each outage. */
  unreachable(error: Error): void;
  reachable(): void;
}

/**
 * Follows the queue of a lock until the signal aborts: by events, and by a listing wherever events may be missing. Every
 * entry is told of once, also through outages.
 * @throws the signal's reason, and what does not pass by itself
 */
export async function follow(
  client: EtcdClient,
  name: string,
  follower: Follower,
  signal: AbortSignal,
): Promise<never> {
  const path = `${client.lockPrefix}/${name}`;
  const backoff = new Backoff({ first: 100, most: 2000 });
  let survey = await surveyLock(client, name, { signal });
  follower.begins(survey, false);
  for (;;) {
    const event = await nextEvent(client, path, { after: survey.index, signal, backoff });
    if (event && event.clusterId === survey.clusterId) {
      const { entries, happenings } = apply({ name, path }, survey.queue.entries, event);
      survey = { ...survey, queue: { ...survey.queue, entries }, index: event.index };
      follower.happened(happenings, event.index);
      continue;
    }
    const found = await look(client, name, { follower, signal, backoff });
    if (found.clusterId === survey.clusterId)
      follower.happened(diff(survey.queue.entries, found.queue.entries), found.index);
    else follower.begins(found, true);
    survey = found;
  }
}

interface Asking {
  readonly signal: AbortSignal;
  readonly backoff: Backoff;
}

/** Undefined where only a listing can tell what there was: none came, or history does not reach back. */
async function nextEvent(
  client: EtcdClient,
  path: string,
  { after, signal, backoff }: Asking & { readonly after: number },
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

/** Waits out what may pass. */
async function look(
  client: EtcdClient,
  name: string,
  { follower, signal, backoff }: Asking & { readonly follower: Follower },
): Promise<QueueSurvey> {
  for (let out = false; ; out = true) {
    try {
      const survey = await surveyLock(client, name, { signal });
      if (out) follower.reachable();
      return survey;
    } catch (error) {
      if (!mayPass(error)) throw error;
      if (!out) follower.unreachable(error as Error);
    }
    await sleep(backoff.next(), signal);
  }
}
