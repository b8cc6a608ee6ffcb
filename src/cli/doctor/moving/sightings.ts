import { isBridged } from '../../../recipe/entries/bridged-value.ts';
import { holdersAmong } from '../../../recipe/rules.ts';
import type { KeyChange, LockQueue, ParsedEntry } from '../../../recipe/survey.ts';

/** How an entry on v2 held the lock there. Times are milliseconds on the monotonic clock. */
interface HoldOnV2 {
  readonly since: number;
  /** Whether an event has shown its beginning. If not, the first read has shown the hold, which began before. */
  readonly isWhole: boolean;
  /** Index of the last write, when a read has first shown the entry during this hold. */
  modifiedIndex: number | undefined;
  /** Whether the entry was written during the hold: its client is at work. */
  isRenewed: boolean;
  /** When the entry was removed. Absent if it has expired. */
  releasedAt?: number;
  /**
   * Whether a later entry of the same identity was in the queue when the entry was removed: that client may have evicted an entry of
   * its killed predecessor.
   */
  mayBeEvicted?: boolean;
}

/** An entry that was seen on v2. */
export interface EntryOnV2 {
  readonly entry: ParsedEntry;
  readonly seenAt: number;
  hold: HoldOnV2 | undefined;
  isGone: boolean;
}

/** An entry that was seen on v3. */
export interface EntryOnV3 {
  readonly entry: ParsedEntry;
  /** Revision of its creation; undefined: the first read has shown the entry. */
  readonly created: number | undefined;
  isGone: boolean;
}

/** What was seen of each entry while both stores were watched without a gap. Knows no requests, so that tests can say what happens. */
export class Sightings {
  /** By key. */
  readonly onV2 = new Map<string, EntryOnV2>();
  /** By {@link idOf}. */
  readonly onV3 = new Map<string, EntryOnV3>();
  /** Ids of the entries that a bridge to both stores has marked. */
  readonly bridged = new Set<string>();
  /** The present entries of each queue on v2, in order. */
  readonly #queues = new Map<string, ParsedEntry[]>();
  /** The ids of the present entries on v3, by key. */
  readonly #idsOnV3 = new Map<string, string>();

  /** Adds the first read of v3. It must come before the first read of v2: a hold on v2 is then seen on v3, too, if it is there. */
  readV3(queues: readonly LockQueue[]): void {
    for (const entry of entriesOf(queues)) this.#enterV3(entry, undefined);
  }

  /** Adds the first read of queues on v2. */
  readV2(queues: readonly LockQueue[], at: number): void {
    for (const { name, entries } of queues) {
      for (const entry of entries) this.#enterV2(entry, at);
      this.#noticeHolders(name, at, false);
    }
  }

  /** Adds a later read of queues on v2, for the renewals: they are no events. Returns whether all its entries were known. */
  rereadV2(queues: readonly LockQueue[]): boolean {
    const seen = entriesOf(queues).map((entry) => ({ entry, hold: this.onV2.get(entry.key)?.hold }));
    for (const { entry, hold } of seen) {
      if (!hold) continue;
      hold.isRenewed ||= hold.modifiedIndex !== undefined && hold.modifiedIndex !== entry.modifiedIndex;
      hold.modifiedIndex = entry.modifiedIndex;
    }
    return seen.every(({ entry }) => this.onV2.has(entry.key));
  }

  changeV2({ how, key, entry }: KeyChange, at: number): void {
    if (how !== 'written') for (const gone of this.#presentBelow(key)) this.#leaveV2(gone, how, at);
    else if (entry) this.#writeV2(entry, at);
  }

  changeV3({ key, entry, index }: KeyChange): void {
    const id = entry ? idOf(entry) : this.#idsOnV3.get(key);
    const known = id === undefined ? undefined : this.onV3.get(id);
    if (!entry) {
      this.#idsOnV3.delete(key);
      if (known) known.isGone = true;
    } else if (!known) this.#enterV3(entry, index);
    else if (known.isGone) {
      known.isGone = false;
      this.#idsOnV3.set(key, idOf(entry));
    }
  }

  /** Whether all entries of this read of v3 are known. */
  knowsOnV3(queues: readonly LockQueue[]): boolean {
    return entriesOf(queues).every((entry) => this.onV3.has(idOf(entry)));
  }

  #enterV3(entry: ParsedEntry, created: number | undefined): void {
    const id = idOf(entry);
    this.#noticeBridge(entry);
    this.#idsOnV3.set(entry.key, id);
    this.onV3.set(id, { entry, created, isGone: false });
  }

  #enterV2(entry: ParsedEntry, at: number): void {
    this.#noticeBridge(entry);
    this.onV2.set(entry.key, { entry, seenAt: at, hold: undefined, isGone: false });
    const queue = this.#queues.get(entry.name) ?? [];
    const last = queue.at(-1);
    queue.push(entry);
    // A late renewal of python-etcd creates a key again under its old name.
    if (last && last.key > entry.key) queue.sort((one, other) => (one.key < other.key ? -1 : 1));
    this.#queues.set(entry.name, queue);
  }

  #writeV2(entry: ParsedEntry, at: number): void {
    const known = this.onV2.get(entry.key);
    if (!known || known.isGone) this.#enterV2(entry, at);
    else this.#noticeBridge(entry);
    this.#noticeHolders(entry.name, at, true);
  }

  #leaveV2(seen: EntryOnV2, how: 'removed' | 'expired', at: number): void {
    const { name, key, identity } = seen.entry;
    const others = (this.#queues.get(name) ?? []).filter((entry) => entry.key !== key);
    this.#queues.set(name, others);
    seen.isGone = true;
    if (seen.hold && how === 'removed') {
      seen.hold.releasedAt = at;
      seen.hold.mayBeEvicted = identity !== undefined && others.some((entry) => entry.identity === identity);
    }
    this.#noticeHolders(name, at, true);
  }

  #noticeHolders(name: string, at: number, isWhole: boolean): void {
    for (const { key, modifiedIndex } of holdersAmong(this.#queues.get(name) ?? [])) {
      const seen = this.onV2.get(key);
      if (seen)
        seen.hold ??= { since: at, isWhole, isRenewed: false, modifiedIndex: isWhole ? undefined : modifiedIndex };
    }
  }

  #noticeBridge(entry: ParsedEntry): void {
    if (isBridged(entry.value)) this.bridged.add(idOf(entry));
  }

  /** Returns the present entries on v2 with this key, or below it. */
  #presentBelow(key: string): readonly EntryOnV2[] {
    const seen = this.onV2.get(key);
    const found = seen ? [seen] : [...this.onV2.values()].filter(({ entry }) => entry.key.startsWith(`${key}/`));
    return found.filter(({ isGone }) => !isGone);
  }
}

/** Returns an id that is the same for the entries of one client in both stores. Go's Mutex, without a uuid, is only in one of them. */
export const idOf = ({ name, uuid, key }: ParsedEntry): string => JSON.stringify([name, uuid || key]);

const entriesOf = (queues: readonly LockQueue[]): readonly ParsedEntry[] => queues.flatMap(({ entries }) => entries);
