import { Scope, sleep } from '../../../base/cancellation.ts';
import { now } from '../../../base/time.ts';
import { EtcdConnectionFailed, mayPass } from '../../../errors.ts';
import type { KeyChange, LockQueue, ReadAt, Surveyor } from '../../../recipe/survey.ts';
import { isListed } from '../../../v2/paths.ts';
import { type Kinds, kindsIn, mayDecide, type Watched } from './kinds.ts';
import { Sightings } from './sightings.ts';

/** How long the stores are watched, in milliseconds. */
export interface WatchTimes {
  /** Long enough for each of two clients that take turns with holds of 2.5 s to begin and end one. */
  readonly atLeast: number;
  /** While the kind of some clients is open: until their turn, or until their next renewal. */
  readonly atMost: number;
}

export const WATCH_TIMES: WatchTimes = { atLeast: 5000, atMost: 25_000 };

/** Number of times that the watch begins again after missed changes. */
const TRIES = 3;
/** Milliseconds between the reads of v2, which show renewals. */
const READ_EVERY = 1000;
/** A stream of changes that is silent for so many milliseconds has shown all earlier changes. */
const SILENCE = 500;
/** Milliseconds between two checks for that silence. */
const CHECK_EVERY = 50;

const WITHOUT_TTLS = { ttls: false } as const;
const OVER = new Error('the watch of both stores is over');

/** Watches both stores, and returns the clients that their entries show, by kind. */
export async function watchStores(v2: Surveyor, v3: Surveyor, times = WATCH_TIMES): Promise<Kinds> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await new StoresWatch({ v2, v3 }).run(times);
    } catch (error) {
      if (!(error instanceof ChangesMissed) || tries === TRIES) throw error;
    }
  }
}

/** Changes of a store were missed, so that an entry may not have been seen. */
class ChangesMissed extends EtcdConnectionFailed {}

const missed = (api: Api, cause?: unknown): ChangesMissed =>
  new ChangesMissed(`the changes of locks on etcd ${api} cannot be followed: some were missed`, { cause });

type Api = 'v2' | 'v3';

/** A stream of changes. */
interface Stream {
  /** The last change that was seen. */
  index: number;
  /** When it was seen. */
  at: number;
}

/** One watch of both stores, without a gap. */
class StoresWatch {
  readonly #stores: Readonly<Record<Api, Surveyor>>;
  readonly #seen = new Sightings();
  /** Ends the streams of each store. */
  readonly #ending = { v2: new Scope(), v3: new Scope() };
  /** Aborts when a stream has failed. */
  readonly #failed = new Scope();
  /** The streams of v2 by the lock that they show; undefined: all listed locks. */
  readonly #onV2 = new Map<string | undefined, Promise<Stream>>();
  /** For each of them, a revision of v3 from which on v2 was watched. */
  readonly #coversFrom = new Map<string | undefined, number>();

  constructor(stores: Readonly<Record<Api, Surveyor>>) {
    this.#stores = stores;
  }

  async run({ atLeast, atMost }: WatchTimes): Promise<Kinds> {
    try {
      const onV3 = await this.#watchV3();
      await this.#watchV2(undefined);
      const beganAt = now();
      const newUntil = beganAt + atLeast;
      const decided = { newUntil, covers: () => true };
      while (now() < newUntil || (now() < beganAt + atMost && mayDecide(this.#seen, decided))) {
        await sleep(Math.min(READ_EVERY, atLeast), this.#failed);
        await this.#readV2();
      }
      const covers = await this.#end(onV3);
      return kindsIn(this.#seen, { newUntil, covers, endedAt: now() });
    } finally {
      for (const ending of Object.values(this.#ending)) ending.abort(OVER);
    }
  }

  /**
   * Ends the watch at one point in time, v2 before v3: an entry that a client of kind both has left on v2 was on v3 before. Returns
   * which changes on v3 are covered by the watch of v2.
   */
  async #end(onV3: Stream): Promise<Watched['covers']> {
    const { v3 } = this.#stores;
    const before = await v3.locks('', WITHOUT_TTLS);
    const onV2 = await this.#readV2();
    for (const { stream, index } of onV2) await this.#settled(stream, index);
    this.#ending.v2.abort(OVER);
    if (!this.#seen.rereadV2(onV2.flatMap(({ queues }) => queues))) throw missed('v2');
    const after = await v3.locks('', WITHOUT_TTLS);
    await this.#settled(onV3, after.index);
    if (!this.#seen.knowsOnV3(before.queues)) throw missed('v3');
    return (name, revision) => {
      const from = this.#coversFrom.get(isListed(name) ? undefined : name);
      return from !== undefined && revision > from && revision <= before.index;
    };
  }

  async #watchV3(): Promise<Stream> {
    const first = await this.#stores.v3.locks('', WITHOUT_TTLS);
    this.#seen.readV3(first.queues);
    for (const { name } of first.queues) this.#watchUnlisted(name);
    return this.#follow('v3', undefined, first, (change) => {
      this.#seen.changeV3(change);
      if (change.entry) this.#watchUnlisted(change.entry.name);
    });
  }

  /** Watches a lock on v2 that a listing of v2 leaves out. */
  #watchUnlisted(name: string): void {
    if (isListed(name) || this.#onV2.has(name) || !isValid(this.#stores.v2, name)) return;
    this.#watchV2(name).catch((error) => this.#failed.abort(error));
  }

  async #watchV2(lock: string | undefined): Promise<void> {
    const began = this.#beginOnV2(lock);
    this.#onV2.set(lock, began);
    await began;
    this.#coversFrom.set(lock, await this.#revision(lock));
  }

  async #beginOnV2(lock: string | undefined): Promise<Stream> {
    const { queues, ...readAt } = await this.#readOnV2(lock);
    this.#seen.readV2(queues, now());
    return this.#follow('v2', lock, readAt, (change) => {
      // The changes of locks below a lock are in streams of their own.
      const [path] = queues.map((queue) => queue.path);
      const isOther = lock !== undefined && change.key.includes('/', `${path}/`.length);
      if (!isOther) this.#seen.changeV2(change, now());
    });
  }

  async #readOnV2(lock: string | undefined): Promise<ReadAt & { readonly queues: readonly LockQueue[] }> {
    if (lock === undefined) return this.#stores.v2.locks('');
    const { queue, ...readAt } = await this.#stores.v2.lock(lock);
    return { queues: [queue], ...readAt };
  }

  /** Reads v2 again. Returns each read with its stream. */
  async #readV2(): Promise<{ stream: Stream; index: number; queues: readonly LockQueue[] }[]> {
    const reads = [...this.#onV2].map(async ([lock, began]) => {
      const stream = await began;
      const { queues, index } = await this.#readOnV2(lock);
      this.#seen.rereadV2(queues);
      return { stream, index, queues };
    });
    return Promise.all(reads);
  }

  async #revision(lock: string | undefined): Promise<number> {
    const { v3 } = this.#stores;
    const { index } = await (lock === undefined ? v3.locks('', WITHOUT_TTLS) : v3.lock(lock, WITHOUT_TTLS));
    return index;
  }

  #follow(api: Api, lock: string | undefined, since: ReadAt, onChange: (change: KeyChange) => void): Stream {
    const stream = { index: since.index, at: now() };
    const signal = this.#ending[api];
    const follow = async (): Promise<never> => {
      for (;;) {
        const known = { index: stream.index, clusterId: since.clusterId };
        const changes = await this.#stores[api].nextChanges(lock, known, { signal });
        if (!changes) throw missed(api);
        for (const change of changes) onChange(change);
        stream.index = changes.at(-1)?.index ?? stream.index;
        stream.at = now();
      }
    };
    follow().catch((error) => {
      if (!signal.aborted) this.#failed.abort(mayPass(error) ? missed(api, error) : error);
    });
    return stream;
  }

  /** Waits until a stream has shown all changes up to an index. */
  async #settled(stream: Stream, index: number): Promise<void> {
    const beganAt = now();
    while (stream.index < index && now() - Math.max(stream.at, beganAt) < SILENCE)
      await sleep(CHECK_EVERY, this.#failed);
  }
}

function isValid(store: Surveyor, name: string): boolean {
  try {
    store.checkName(name);
    return true;
  } catch {
    return false;
  }
}
