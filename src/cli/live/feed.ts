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
  /** Returns the names of the locks whose TTLs are shown. Only these are read again. Default: none. */
  readonly shown?: () => readonly string[];
  /** Whether somebody sees what the model has: then an outage is noticed sooner. Default: nobody. */
  readonly isSeen?: () => boolean;
}

/** Milliseconds between two reads of locks that are shown, for their TTLs, and how many are read then: one after the other. */
const READ_SHOWN_EVERY = 2000;
const READ_AT_ONCE = 5;
/** Milliseconds between two reads of any lock: a connection that died silently shows no event. The second: while somebody sees it. */
const READ_ANY_EVERY = 20_000;
const READ_ANY_EVERY_IF_SEEN = 4000;
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
      // On etcd v3, each TTL takes a request.
      const survey = await surveyor.locks(prefix, { signal, ttls: false });
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
  { onChange, shown = () => [], isSeen = () => false }: FeedOptions,
): Promise<void> {
  let differing: string | undefined;
  let turn = 0;
  let lastAt = Date.now();
  while (!ending.aborted) {
    await pause(READ_SHOWN_EVERY, ending);
    const names = shown();
    const wanted = differing === undefined ? rotated(names, turn).slice(0, READ_AT_ONCE) : [differing];
    turn += READ_AT_ONCE;
    const every = isSeen() ? READ_ANY_EVERY_IF_SEEN : READ_ANY_EVERY;
    if (wanted.length === 0 && Date.now() >= lastAt + every) wanted.push(model.locks[0]?.name ?? 'any');
    for (const name of wanted) {
      if (ending.aborted) return;
      lastAt = Date.now();
      try {
        const { queue } = await surveyor.lock(name, { signal: ending });
        const isSame = model.read(queue, Date.now());
        if (isSame) onChange();
        else if (differing === name) ending.abort(MISSED);
        differing = isSame ? undefined : name;
      } catch {
        // The listing that follows says what is wrong.
        ending.abort(MISSED);
      }
    }
  }
}

const rotated = (names: readonly string[], by: number): string[] => {
  const at = names.length === 0 ? 0 : by % names.length;
  return [...names.slice(at), ...names.slice(0, at)];
};
