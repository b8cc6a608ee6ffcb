import { type Source, sleep } from '../base/cancellation.ts';
import { Backoff } from '../base/time.ts';
import { mayPass } from '../errors.ts';
import { afterChange, type QueueChange, type QueueSurvey, type QueueSurveyor } from './survey.ts';

/** A state of a queue that is followed. */
export interface QueueState {
  readonly survey: QueueSurvey;
  /** The change that led to this state. Undefined if the queue was read: at the start, and when changes may have been missed. */
  readonly change: QueueChange | undefined;
}

export interface FollowOptions {
  readonly signal: Source;
  /** Whether the TTLs of the entries are needed. Default true. */
  readonly ttls?: boolean;
  /** Called once per outage of etcd. */
  readonly onOutage?: (error: Error) => void;
  readonly onRecovery?: () => void;
}

/**
 * Follows the queue of a lock: yields its present state, then the state after each change, until the signal aborts. Retries after
 * a temporary error, but not the first read. A state between two reads may be missed.
 * @throws the signal's reason, errors that are not temporary, and any error of the first read
 */
export async function* followQueue(
  surveyor: QueueSurveyor,
  name: string,
  options: FollowOptions,
): AsyncGenerator<QueueState, never> {
  const backoff = new Backoff({ first: 100, most: 2000 });
  const { signal, ttls } = options;
  let survey = await surveyor.lock(name, { signal, ttls });
  yield { survey, change: undefined };
  for (;;) {
    const changes = await nextChanges(surveyor, survey, { ...options, backoff });
    for (const change of changes ?? []) {
      survey = afterChange(survey, change);
      yield { survey, change };
    }
    if (changes) continue;
    survey = await readQueue(surveyor, name, { ...options, backoff });
    yield { survey, change: undefined };
  }
}

interface RetryOptions extends FollowOptions {
  readonly backoff: Backoff;
}

/** Waits for the next changes. Resolves to undefined if the queue must be read again: also after a failed wait. */
async function nextChanges(
  surveyor: QueueSurveyor,
  survey: QueueSurvey,
  { signal, ttls, backoff }: RetryOptions,
): Promise<readonly QueueChange[] | undefined> {
  try {
    const changes = await surveyor.next(survey, { signal, ttls });
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
  surveyor: QueueSurveyor,
  name: string,
  { signal, ttls, backoff, onOutage, onRecovery }: RetryOptions,
): Promise<QueueSurvey> {
  for (let outage = false; ; outage = true) {
    try {
      const survey = await surveyor.lock(name, { signal, ttls });
      if (outage) onRecovery?.();
      return survey;
    } catch (error) {
      if (!mayPass(error)) throw error;
      if (!outage) onOutage?.(error as Error);
    }
    await sleep(backoff.next(), signal);
  }
}
