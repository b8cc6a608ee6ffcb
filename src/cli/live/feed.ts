import { pause, Scope, sleep } from '../../base/cancellation.ts';
import { Backoff, now } from '../../base/time.ts';
import { mayPass } from '../../errors.ts';
import type { ReadAt, Surveyor } from '../../recipe/survey.ts';
import type { LiveModel } from './model.ts';

export interface FeedOptions {
  readonly prefix: string;
  readonly signal: AbortSignal;
  /** Called after each change of the model. */
  readonly onChange: () => void;
  /** Returns the name of the lock whose TTLs are shown, if any. Only these are read again. */
  readonly shown?: () => string | undefined;
}

/** Milliseconds between two reads of the lock that is shown, for its TTLs. */
const READ_SHOWN_EVERY = 2000;
/** Milliseconds between two reads of any lock: a connection that died silently shows no event. */
const READ_ANY_EVERY = 20_000;
/** Milliseconds after which a watch has lasted: then the next listing need not wait long. */
const LASTING = 10_000;
/** Abort reason of a watch that has missed a change, or whose etcd does not answer. */
const MISSED = new Error('the watch has missed a change');

/**
 * Keeps a model up to date until the signal aborts: lists all queues once, and follows their changes with one watch. Reads one queue from
 * time to time. After an outage, and when changes were missed, it lists all queues again.
 * @throws the signal's reason, errors that are not temporary, and any error of the first listing
 */
export async function keepLive(surveyor: Surveyor, model: LiveModel, options: FeedOptions): Promise<never> {
  const { prefix, signal, onChange } = options;
  const backoff = new Backoff({ first: 100, most: 5000 });
  for (;;) {
    const beganAt = now();
    try {
      const survey = await surveyor.locks(prefix, { signal });
      model.listed(survey, Date.now());
      onChange();
      await untilMissed(surveyor, model, survey, options);
    } catch (error) {
      signal.throwIfAborted();
      if (model.seenAt === undefined || !mayPass(error)) throw error;
      model.failed((error as Error).message);
      onChange();
    }
    if (now() - beganAt >= LASTING) backoff.reset();
    await sleep(backoff.next(), signal);
  }
}

/** Follows the changes. Resolves when all queues must be listed again. */
async function untilMissed(surveyor: Surveyor, model: LiveModel, since: ReadAt, options: FeedOptions): Promise<void> {
  const { signal, onChange } = options;
  const ending = new Scope(signal);
  const checks = checkRegularly(surveyor, model, ending, options);
  try {
    for (let known = since; ; ) {
      const changes = await surveyor.nextChanges(undefined, known, { signal: ending });
      if (!changes) return;
      for (const change of changes) model.changed(change, Date.now());
      known = { ...known, index: changes.at(-1)?.index ?? known.index };
      onChange();
    }
  } catch (error) {
    if (error !== MISSED) throw error;
  } finally {
    ending.abort(MISSED);
    ending.dispose();
    await checks;
  }
}

/** Reads one queue from time to time. Ends the watch if etcd does not answer, or if a queue differs twice from the model. Never rejects. */
async function checkRegularly(
  surveyor: Surveyor,
  model: LiveModel,
  ending: Scope,
  { onChange, shown }: FeedOptions,
): Promise<void> {
  let differs = false;
  let nextAt = Date.now() + READ_ANY_EVERY;
  while (!ending.aborted) {
    await pause(READ_SHOWN_EVERY, ending);
    const name = shown?.() ?? (Date.now() >= nextAt ? (model.locks[0]?.name ?? 'any') : undefined);
    if (ending.aborted || name === undefined) continue;
    nextAt = Date.now() + READ_ANY_EVERY;
    try {
      const { queue } = await surveyor.lock(name, { signal: ending });
      const isSame = model.read(queue, Date.now());
      if (isSame) onChange();
      else if (differs) ending.abort(MISSED);
      differs = !isSame;
    } catch {
      // The listing that follows says what is wrong.
      ending.abort(MISSED);
    }
  }
}
