/** Events that a bridge reports to clients of etcd v2. */
import type { KeyEvent } from '../../v2/keys-api.ts';
import { inTermsOfV2 } from './errors.ts';

/** Yields the event that a poll ends with, if there is one. */
export async function* eventOf(poll: Promise<KeyEvent | undefined>): AsyncGenerator<KeyEvent> {
  const event = await poll;
  if (event) yield event;
}

/** Waits for the first event. Resolves to undefined if the events end without one. */
export async function firstOf(events: AsyncIterable<KeyEvent>): Promise<KeyEvent | undefined> {
  for await (const event of events) return event;
  return undefined;
}

/** Yields the events, and translates an error of etcd v3 to one of etcd v2. */
export async function* translatedEvents(events: () => AsyncIterable<KeyEvent>): AsyncGenerator<KeyEvent> {
  try {
    yield* events();
  } catch (error) {
    throw inTermsOfV2(error);
  }
}
