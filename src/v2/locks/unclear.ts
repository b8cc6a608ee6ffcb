import { now } from '../../base/time.ts';
import { SEARCH_APPEND_FOR } from '../../recipe/entries/timing.ts';
import type { Entry } from '../../recipe/store.ts';
import { READ_EVERY } from './timing.ts';

type Key = Pick<Entry, 'key' | 'rank'>;

/**
 * Counts appends whose outcome is unknown: each append sent counts until it is answered or its key is seen. etcd may never carry it
 * out, so all are forgotten after a search of {@link SEARCH_APPEND_FOR}. The search begins with the first read by quorum after the last of
 * them: a member may carry out an append after an outage. A longer pause between two reads, such as a hold, does not count.
 */
export class UnclearAppends {
  #count = 0;
  /** Keys up to this rank existed before these appends. A stale listing may still show them. */
  #floor = -1n;
  /** Keys that exist before the next append have at most this rank. */
  #highest = -1n;
  readonly #counted = new Set<string>();
  /** Milliseconds of the search. */
  #searched = 0;
  /** When the search last read; undefined before its first read. */
  #readAt: number | undefined;

  /** Whether an append may have created, or may still create, a key that has not been seen. */
  get any(): boolean {
    return this.#count > 0;
  }

  /** Call this after a read by quorum. @param index index of the store at that read: keys of later appends have greater ranks */
  existed(index: bigint): void {
    this.#note(index);
    const readAt = now();
    if (this.#readAt !== undefined) this.#searched += Math.min(readAt - this.#readAt, READ_EVERY * 1000);
    this.#readAt = readAt;
  }

  /** Call this when what such a read has shown is dealt with. */
  searched(): void {
    if (this.any && this.#searched >= SEARCH_APPEND_FOR * 1000) this.#forget();
  }

  /** Call this before an append is sent. @param last the last own entry before that append */
  sent(last: Key | undefined): void {
    this.#note(last?.rank);
    if (!this.any) this.#floor = this.#highest;
    this.#count += 1;
  }

  /** Call this when the outcome of an append is known. @param made the key that it created; undefined if none */
  answered(made?: Key): void {
    this.#note(made?.rank);
    if (made && this.#count > 1) this.#counted.add(made.key);
    this.#decrement();
  }

  /** Call this when the outcome of an append is unknown. */
  lost(): void {
    this.#restartSearch();
  }

  /** Call this when a key with the own value has been found. Counts each key once. */
  seen({ key, rank }: Key): void {
    this.#note(rank);
    if (!this.any || rank <= this.#floor || this.#counted.has(key)) return;
    this.#counted.add(key);
    this.#decrement();
  }

  /** Adds the count of `other` to this one, and resets `other`. */
  inherit(other: UnclearAppends): void {
    this.#note(other.#highest);
    if (!other.any) return;
    if (!this.any || other.#floor < this.#floor) this.#floor = other.#floor;
    this.#searched = this.any ? Math.min(this.#searched, other.#searched) : other.#searched;
    this.#readAt = other.#readAt;
    for (const key of other.#counted) this.#counted.add(key);
    this.#count += other.#count;
    other.#forget();
  }

  #note(rank = -1n): void {
    if (rank > this.#highest) this.#highest = rank;
  }

  #decrement(): void {
    this.#count -= 1;
    if (!this.any) this.#forget();
  }

  #forget(): void {
    this.#count = 0;
    this.#counted.clear();
    this.#restartSearch();
  }

  #restartSearch(): void {
    this.#searched = 0;
    this.#readAt = undefined;
  }
}
