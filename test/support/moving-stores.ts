import { type Kinds, kindsIn, mayDecide } from '../../src/cli/doctor/moving/kinds.ts';
import { Sightings } from '../../src/cli/doctor/moving/sightings.ts';
import { type LockQueue, type ParsedEntry, parsed } from '../../src/recipe/survey.ts';

/** Milliseconds between two reads of v2. */
const READ_EVERY = 1000;
/** Entries that appear on v2 after so many milliseconds do not count, unless they show their kind. */
const NEW_UNTIL = 5000;

/** The queues of both stores, and what a watch of them sees. Time passes only by `pass`. */
export class MovingStores {
  readonly #seen = new Sightings();
  readonly #present = { v2: new Map<string, ParsedEntry>(), v3: new Map<string, ParsedEntry>() };
  #isWatched = false;
  #time = 0;
  /** The index of v2, and the revision of v3. */
  #index = 0;

  /** Begins the watch. Earlier entries are seen if they are still there. */
  watch(): void {
    this.#isWatched = true;
    this.#seen.readV3(queuesOf(this.#present.v3));
    this.#seen.readV2(queuesOf(this.#present.v2), this.#time);
  }

  pass(ms: number): void {
    for (let left = ms; left > 0; left -= READ_EVERY) {
      this.#time += Math.min(left, READ_EVERY);
      if (this.#isWatched) this.#seen.rereadV2(queuesOf(this.#present.v2));
    }
  }

  get #watched() {
    return { newUntil: NEW_UNTIL, covers: () => true };
  }

  /** Ends the watch. */
  kinds(): Kinds {
    return kindsIn(this.#seen, { ...this.#watched, endedAt: this.#time });
  }

  mayDecide(): boolean {
    return mayDecide(this.#seen, this.#watched);
  }

  /** Adds an entry. Returns what its client, or the store, may do with it. */
  enter(api: 'v2' | 'v3', value: string, name = 'job'): Entered {
    this.#index += 1;
    const key = `/_locks/${name}/${String(this.#index).padStart(20, '0')}`;
    const rank = BigInt(this.#index);
    const entry = { ...parsed(name, { key, value, rank, ttl: 3 }), modifiedIndex: this.#index };
    this.#present[api].set(key, entry);
    this.#notice(api, 'written', entry);
    const end = (how: 'removed' | 'expired') => () => {
      this.#index += 1;
      this.#present[api].delete(key);
      this.#notice(api, how, entry);
    };
    const renew = () => {
      this.#index += 1;
      this.#present[api].set(key, { ...entry, modifiedIndex: this.#index });
    };
    return { renew, leave: end('removed'), expire: end('expired') };
  }

  #notice(api: 'v2' | 'v3', how: 'written' | 'removed' | 'expired', entry: ParsedEntry): void {
    if (!this.#isWatched) return;
    const change = { how, key: entry.key, index: this.#index, ...(how === 'written' && { entry }) };
    if (api === 'v2') this.#seen.changeV2(change, this.#time);
    else this.#seen.changeV3(change);
  }
}

/** An entry that is there. */
export interface Entered {
  /** Renews the entry, which is no event. */
  renew(): void;
  leave(): void;
  expire(): void;
}

function queuesOf(present: ReadonlyMap<string, ParsedEntry>): LockQueue[] {
  const all = [...present.values()];
  const queue = (name: string) => all.filter((entry) => entry.name === name);
  const names = [...new Set(all.map(({ name }) => name))];
  return names.map((name) => ({ name, path: `/_locks/${name}`, entries: queue(name), ignored: [] }));
}
