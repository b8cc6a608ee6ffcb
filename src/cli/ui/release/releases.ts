import { holdersAmong } from '../../../recipe/rules.ts';
import type { LockQueue, ParsedEntry, Surveyor } from '../../../recipe/survey.ts';
import { consequence, resultOf, WAITER_REMOVED } from '../../queues/removal.ts';
import { describe } from '../../queues/show.ts';
import { cut, keyOf, uuidOf } from '../encode.ts';
import type { ShownPlan, ShownResult } from '../shapes.ts';

export interface ReleaseStore {
  readonly api: 'v2' | 'v3';
  readonly surveyor: Pick<Surveyor, 'checkName' | 'lock' | 'remove'>;
}

/** An entry as the page shows it: long keys and uuids are cut. */
export interface EntryName {
  readonly name: string;
  readonly api: string;
  readonly key: string;
  readonly uuid: string;
}

export interface Answer {
  readonly status: number;
  readonly body: ShownPlan | ShownResult;
}

/** Number of requests at a time. Each reads a queue, and may remove an entry. */
const MOST_AT_ONCE = 4;
/** Number of characters of a text. It names each client that gets the lock. */
const LONGEST = 5000;

export interface ReleasesOptions {
  /** Only locks whose name begins with this. */
  readonly prefix: string;
  /** Called with a line for each entry that was removed. */
  readonly onRemoved: (line: string) => void;
}

/** Removes entries for viewers, as the command `release` does. */
export class Releases {
  readonly #stores: readonly ReleaseStore[];
  readonly #options: ReleasesOptions;
  #running = 0;

  constructor(stores: readonly ReleaseStore[], options: ReleasesOptions) {
    this.#stores = stores;
    this.#options = options;
  }

  /**
   * Returns what the removal of an entry means: a `ShownPlan`. Removes nothing.
   * @throws errors of etcd
   */
  plan(wanted: EntryName): Promise<Answer> {
    return this.#with(wanted, async (_store, queue, entry) => {
      const isHolder = holdersAmong(queue.entries).includes(entry);
      const meaning = cut(isHolder ? consequence(queue, entry) : WAITER_REMOVED, LONGEST);
      return { status: 200, body: { isHolder, entry: cut(describe(entry), LONGEST), consequence: meaning } };
    });
  }

  /**
   * Removes an entry, unless it has changed since it was shown: a `ShownResult`.
   * @param wanted with `force`, it is removed even if it holds the lock
   * @param by who wants it, for the log
   * @throws errors of etcd
   */
  remove(wanted: EntryName & { readonly force: boolean }, by: string): Promise<Answer> {
    return this.#with(wanted, async ({ surveyor }, queue, entry) => {
      if (holdersAmong(queue.entries).includes(entry) && !wanted.force)
        return refused(409, `${cut(entry.key, LONGEST)} was not removed: it holds the lock, and "force" is not true.`);
      const { isGone, text } = resultOf(await surveyor.remove(entry), entry);
      if (isGone) this.#options.onRemoved(`for ${by}: ${text} It was ${describe(entry)}`);
      return { status: isGone ? 200 : 409, body: { isRemoved: isGone, text: cut(text, LONGEST) } };
    });
  }

  async #with(
    { name, api, key, uuid }: EntryName,
    use: (store: ReleaseStore, queue: LockQueue, entry: ParsedEntry) => Promise<Answer>,
  ): Promise<Answer> {
    const store = this.#stores.find((each) => each.api === api);
    if (!store || !name.startsWith(this.#options.prefix) || !isValid(store, name))
      return refused(404, 'this page does not show such a lock.');
    if (this.#running >= MOST_AT_ONCE) return refused(503, 'other entries are being released: try again.');
    this.#running += 1;
    try {
      const { queue } = await store.surveyor.lock(name);
      const found = queue.entries.filter((entry) => keyOf(entry) === key && uuidOf(entry) === uuid);
      const [entry] = found;
      if (!entry) return refused(404, 'the entry is no longer in the queue, or its value has changed.');
      if (found.length > 1)
        return refused(409, `${found.length} entries are shown like this one, because they are cut.`);
      return await use(store, queue, entry);
    } finally {
      this.#running -= 1;
    }
  }
}

const refused = (status: number, text: string): Answer => ({ status, body: { isRemoved: false, text } });

function isValid({ surveyor }: ReleaseStore, name: string): boolean {
  try {
    surveyor.checkName(name);
    return true;
  } catch {
    return false;
  }
}
