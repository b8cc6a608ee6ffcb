import { ignore } from '../../base/cancellation.ts';
import { now } from '../../base/time.ts';
import { EtcdValueError } from '../../errors.ts';
import { parseRecord } from '../../manager/once/record.ts';
import type { Surveyor } from '../../recipe/survey.ts';
import { cut, LONGEST_KEY, LONGEST_TEXT } from './encode.ts';
import type { ShownJob, ShownJobs } from './shapes.ts';

export interface JobStore {
  readonly api: 'v2' | 'v3';
  readonly surveyor: Pick<Surveyor, 'markers'>;
}

/** Milliseconds for which a read is used for all who ask. */
const FRESH_FOR = 1000;
/** Number of jobs that are sent. */
const MOST_JOBS = 1000;

/** The jobs that run once per tick. Only who asks for them causes reads: at most one per second. */
export class Jobs {
  readonly #stores: readonly JobStore[];
  readonly #prefix: string;
  #answer: Promise<string> | undefined;
  #isReading = false;
  #freshUntil = 0;

  /** @param prefix only jobs whose name begins with it */
  constructor(stores: readonly JobStore[], prefix: string) {
    this.#stores = stores;
    this.#prefix = prefix;
  }

  /**
   * Returns the jobs as JSON: a `ShownJobs`.
   * @throws errors of etcd
   */
  json(): Promise<string> {
    if (this.#answer && (this.#isReading || now() < this.#freshUntil)) return this.#answer;
    this.#isReading = true;
    this.#answer = this.#read().finally(() => {
      this.#isReading = false;
      this.#freshUntil = now() + FRESH_FOR;
    });
    this.#answer.catch(ignore); // whoever asked gets it
    return this.#answer;
  }

  async #read(): Promise<string> {
    const jobs: ShownJob[] = [];
    for (const { api, surveyor } of this.#stores)
      for (const [name, value] of (await surveyor.markers?.()) ?? [])
        if (name.startsWith(this.#prefix) && jobs.length < MOST_JOBS) jobs.push(jobOf(api, name, value));
    const unlisted = this.#stores.filter(({ surveyor }) => !surveyor.markers).map(({ api }) => api);
    const shown: ShownJobs = { now: Date.now(), jobs, unlisted };
    return JSON.stringify(shown);
  }
}

function jobOf(api: 'v2' | 'v3', name: string, value: string): ShownJob {
  const job = { api, name: cut(name, LONGEST_KEY) };
  try {
    const { at, state, label } = parseRecord(name, { value });
    return { ...job, lastTick: at, state, host: label === undefined ? null : cut(label, LONGEST_TEXT) };
  } catch (error) {
    if (!(error instanceof EtcdValueError)) throw error;
    return { ...job, lastTick: null, state: 'unreadable', host: null };
  }
}
