import { Scope, type Source } from '../base/cancellation.ts';
import type { Queue } from '../recipe/store.ts';
import {
  afterChange,
  type ParsedEntry,
  parsed,
  type QueueSurvey,
  type QueueSurveyor,
  type SurveyOptions,
} from '../recipe/survey.ts';
import type { Pair } from './pair.ts';
import { merged } from './queue.ts';

/** The merged queue of both stores. Its index and its cluster are those of v2. */
interface MergedSurvey extends QueueSurvey {
  readonly surveys: Pair<QueueSurvey>;
}

/** The queues of both stores, for observers. */
export class BothSurveyor implements QueueSurveyor {
  readonly #surveyors: Pair<QueueSurveyor>;

  constructor(surveyors: Pair<QueueSurveyor>) {
    this.#surveyors = surveyors;
  }

  async lock(name: string, options?: SurveyOptions): Promise<MergedSurvey> {
    const [v2, v3] = await Promise.all([
      this.#surveyors.v2.lock(name, options),
      this.#surveyors.v3.lock(name, options),
    ]);
    return { ...v2, queue: { ...v2.queue, entries: entriesOf({ v2, v3 }) }, surveys: { v2, v3 } };
  }

  /**
   * Resolves to undefined when the merged queue has changed, or when the queue of one store must be read again. Never resolves to the
   * changes: only a new read shows both queues at the same time.
   */
  async next(survey: QueueSurvey, { signal, ttls }: SurveyOptions & { readonly signal: Source }): Promise<undefined> {
    let { surveys } = survey as MergedSurvey;
    const before = idsIn(surveys);
    const ending = new Scope(signal);
    const wait = async (api: 'v2' | 'v3') => {
      const changes = await this.#surveyors[api].next(surveys[api], { signal: ending, ttls });
      return { api, changes };
    };
    const waits = { v2: wait('v2'), v3: wait('v3') };
    try {
      // Many changes of a store do not change the merged queue, such as renewals on v2.
      while (idsIn(surveys) === before) {
        const { api, changes } = await Promise.race([waits.v2, waits.v3]);
        if (!changes) return;
        surveys = { ...surveys, [api]: changes.reduce(afterChange, surveys[api]) };
        waits[api] = wait(api);
      }
    } finally {
      ending.abort(OVER);
      ending.dispose();
      await Promise.allSettled([waits.v2, waits.v3]);
    }
  }
}

/** Abort reason of the waits that are left when one of them has shown a change. */
const OVER = new Error('the queue has changed');

function entriesOf({ v2, v3 }: Pair<QueueSurvey>): readonly ParsedEntry[] {
  const queueOf = ({ queue: { entries } }: QueueSurvey): Queue => ({ entries, inOrder: () => entries });
  return merged(queueOf(v2), queueOf(v3))
    .inOrder()
    .map((entry) => parsed(v2.queue.name, entry));
}

/** Returns a text that is the same for two merged queues with the same keys and values in the same order. */
const idsIn = (surveys: Pair<QueueSurvey>): string =>
  JSON.stringify(entriesOf(surveys).map(({ key, value }) => [key, value]));
