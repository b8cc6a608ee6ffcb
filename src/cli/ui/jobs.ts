import type { Schedule } from '../../manager/once/schedule.ts';
import type { Surveyor } from '../../recipe/survey.ts';
import { tickOf } from '../queues/ticks.ts';
import { cut, LONGEST_KEY, LONGEST_TEXT } from './encode.ts';
import { OnDemand } from './on-demand.ts';
import type { ShownJob, ShownJobs } from './shapes.ts';

export interface JobStore {
  readonly api: 'v2' | 'v3';
  readonly surveyor: Pick<Surveyor, 'markers'>;
  /** Reads the value of one marker; undefined if there is none. */
  readonly marker: (name: string) => Promise<string | undefined>;
}

/** Milliseconds for which a read is used for all who ask. */
const FRESH_FOR = 1000;
/** Number of jobs that are sent. */
const MOST_JOBS = 1000;

type Counting = Pick<Schedule, 'between'>;

/** The jobs that run once per tick. Only who asks for them causes reads: at most one of all jobs per second. */
export class Jobs {
  readonly #stores: readonly JobStore[];
  readonly #prefix: string;
  readonly #schedules: ReadonlyMap<string, Counting>;
  readonly #reads = new OnDemand(() => this.#read(), FRESH_FOR);

  /**
   * @param prefix only jobs whose name begins with it
   * @param schedules by the name of their job: etcd has none
   */
  constructor(stores: readonly JobStore[], prefix: string, schedules: ReadonlyMap<string, Schedule> = new Map()) {
    this.#stores = stores;
    this.#prefix = prefix;
    this.#schedules = new Map([...schedules].map(([name, schedule]) => [name, counting(schedule)]));
  }

  /**
   * Returns the jobs as JSON: a `ShownJobs`.
   * @throws errors of etcd
   */
  json(): Promise<string> {
    return this.#reads.get();
  }

  async #read(): Promise<string> {
    const jobs: ShownJob[] = [];
    for (const store of this.#stores)
      for (const [name, value] of await this.#recordsOf(store))
        if (name.startsWith(this.#prefix) && jobs.length < MOST_JOBS)
          jobs.push(jobOf(store.api, name, value, this.#schedules.get(name)));
    const found = new Set(jobs.map(({ name }) => name));
    for (const [name] of this.#schedules) if (!found.has(cut(name, LONGEST_KEY))) jobs.push(this.#without(name));
    const unlisted = this.#stores.filter(({ surveyor }) => !surveyor.markers).map(({ api }) => api);
    const shown: ShownJobs = { now: Date.now(), jobs, unlisted };
    return JSON.stringify(shown);
  }

  /** Returns the values of the records in a store. One that does not list them is asked for the jobs whose names are known. */
  async #recordsOf({ surveyor, marker }: JobStore): Promise<ReadonlyMap<string, string>> {
    if (surveyor.markers) return surveyor.markers();
    const records = new Map<string, string>();
    for (const name of this.#schedules.keys()) {
      const value = await marker(name);
      if (value !== undefined) records.set(name, value);
    }
    return records;
  }

  /** A job with a schedule, but without a record. */
  #without(name: string): ShownJob {
    const api = this.#stores.at(-1)?.api ?? 'v3';
    return { api, name: cut(name, LONGEST_KEY), lastTick: null, state: 'no record', host: null, missed: null };
  }
}

function jobOf(api: 'v2' | 'v3', name: string, value: string, schedule: Counting | undefined): ShownJob {
  const { record, missed = null } = tickOf(name, value, schedule);
  const job = { api, name: cut(name, LONGEST_KEY), missed };
  if (!record) return { ...job, lastTick: null, state: 'unreadable', host: null };
  const { at, state, label } = record;
  return { ...job, lastTick: at, state, host: label === undefined ? null : cut(label, LONGEST_TEXT) };
}

/** Returns a schedule that counts only what is new since its last call: counting the ticks of a cron expression takes long. */
function counting(schedule: Counting): Counting {
  let last = { from: Number.NaN, to: Number.NaN, count: 0 };
  return {
    between(from, to) {
      const isLater = from === last.from && to >= last.to;
      const count = isLater ? last.count + schedule.between(last.to - 1, to) : schedule.between(from, to);
      last = { from, to, count };
      return count;
    },
  };
}
