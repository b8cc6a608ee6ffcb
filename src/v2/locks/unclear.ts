import type { Entry } from '../../recipe/store.ts';

type Key = Pick<Entry, 'key' | 'rank'>;

/** Counts appends whose outcome is unknown: those sent, minus the distinct keys seen since. */
export class UnclearAppends {
  #count = 0;
  /** Keys up to this rank existed before these appends. A stale listing may still show them. */
  #floor = -1n;
  readonly #counted = new Set<string>();

  /** Whether an append may have made, or may still make, a key that nobody has seen. */
  get any(): boolean {
    return this.#count > 0;
  }

  /** To be called before an append is sent. @param last own entry before it */
  sent(last: Key | undefined): void {
    if (!this.any) this.#floor = last?.rank ?? -1n;
    this.#count += 1;
  }

  /** To be called when the outcome of an append is known. @param made its key; undefined if it made none */
  answered(made?: Key): void {
    if (made && this.#count > 1) this.#counted.add(made.key);
    this.#decrement();
  }

  /** To be called when a key with our value was found. Counts each key once. */
  seen({ key, rank }: Key): void {
    if (!this.any || rank <= this.#floor || this.#counted.has(key)) return;
    this.#counted.add(key);
    this.#decrement();
  }

  /** Moves the count of another one here. */
  inherit(other: UnclearAppends): void {
    if (!other.any) return;
    if (!this.any || other.#floor < this.#floor) this.#floor = other.#floor;
    for (const key of other.#counted) this.#counted.add(key);
    this.#count += other.#count;
    other.#count = 0;
    other.#counted.clear();
  }

  #decrement(): void {
    this.#count -= 1;
    if (!this.any) this.#counted.clear();
  }
}
