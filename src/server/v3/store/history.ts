import { sizeOf } from '../bytes.ts';
import { compacted } from '../errors.ts';
import type { KeyValue } from '../messages.ts';

/** A change of one key. */
export interface Change {
  /** The key after the change. Of a removed key, only its name and `mod_revision` are set. */
  readonly kv: KeyValue;
  /** The key before the change; undefined: it did not exist. */
  readonly previous: KeyValue | undefined;
  readonly isRemoval: boolean;
}

/** Revision of an empty store. */
export const FIRST_REVISION = 1n;

/** Maximum number of bytes of keys and values in the history, whatever its limit: values may be large. */
const MOST_BYTES = 256 * 2 ** 20;

/** The changes since the last compaction, by revision. A past state of the store is the present one without the changes since. */
export class History {
  readonly #limit: number;
  /** The changes of each revision from `#first` on. */
  #revisions: (readonly Change[])[] = [];
  #first = FIRST_REVISION + 1n;
  #changes = 0;
  #bytes = 0;
  #compacted = -1n;

  /** @param limit number of changes to keep: older ones are compacted as new ones arrive, and earlier if they are large */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The revision that the store was compacted at: the oldest one that can be read. -1: never, as in etcd. */
  get compacted(): bigint {
    return this.#compacted;
  }

  /** The latest revision. */
  get revision(): bigint {
    return this.#first + BigInt(this.#revisions.length) - 1n;
  }

  /** Adds the changes of the next revision. */
  add(changes: readonly Change[]): void {
    this.#revisions.push(changes);
    this.#changes += changes.length;
    this.#bytes += bytesOf(changes);
    // Some at once, because each compaction costs as much as the history is long.
    if (this.#changes <= this.#limit * 1.1 && this.#bytes <= MOST_BYTES * 1.1) return;
    let [drop, left, bytes] = [0, this.#changes, this.#bytes];
    for (; left > this.#limit || bytes > MOST_BYTES; drop += 1) {
      const oldest = this.#revisions[drop] ?? [];
      left -= oldest.length;
      bytes -= bytesOf(oldest);
    }
    this.compact(this.#first + BigInt(Math.min(drop, this.#revisions.length - 1)));
  }

  /** Forgets all changes before a revision. */
  compact(revision: bigint): void {
    this.#compacted = revision;
    const forgotten = this.#revisions.splice(0, Math.max(0, Number(revision - this.#first)));
    this.#first += BigInt(forgotten.length);
    for (const changes of forgotten) {
      this.#changes -= changes.length;
      this.#bytes -= bytesOf(changes);
    }
  }

  /**
   * Returns the changes of each revision from `revision` on, of at most `limit` revisions.
   * @throws {EtcdV3Refusal} if they were compacted
   */
  since(revision: bigint, limit?: number): readonly (readonly Change[])[] {
    if (revision < this.#compacted) throw compacted();
    const start = Math.max(0, Number(revision - this.#first));
    return this.#revisions.slice(start, limit === undefined ? undefined : start + limit);
  }
}

const bytesOf = (changes: readonly Change[]): number => changes.reduce((sum, change) => sum + sizeOfChange(change), 0);

/** Returns the number of bytes that a change keeps. */
export const sizeOfChange = ({ kv, previous }: Change): number => sizeOf(kv) + (previous ? sizeOf(previous) : 0);
