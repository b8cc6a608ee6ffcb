import type { Entry } from '../../recipe/store.ts';

type Key = Pick<Entry, 'key' | 'rank'>;

/** Counts the appends whose outcome is unknown, less the keys that have been seen since. */
export class UnclearAppends {
  #count = 0;
  /** What they cannot have made: keys up to this number, and keys counted already. */
  #floor = -1n;
  readonly #counted = new Set<string>();

  /** Whether a key may be in the queue, or still come, that nobody has seen. */
  get any(): boolean {
    return this.#count > 0;
  }

  /** An append is about to be sent, after we had `last`. */
  sent(last: Key | undefined): void {
    if (!this.any) this.#floor = last?.rank ?? -1n;
    this.#count += 1;
  }

  /** Its outcome is known: the key it made, or none. */
  answered(made?: Key): void {
    if (made && this.#count > 1) this.#counted.add(made.key);
    this.#less();
  }

  /** A key of ours was found: counts once, as the outcome of one append. */
  seen({ key, rank }: Key): void {
    if (!this.any || rank <= this.#floor || this.#counted.has(key)) return;
    this.#counted.add(key);
    this.#less();
  }

  /** Takes over what another one still counts. */
  inherit(other: UnclearAppends): void {
    if (!other.any) return;
    if (!this.any || other.#floor < this.#floor) this.#floor = other.#floor;
    for (const key of other.#counted) this.#counted.add(key);
    this.#count += other.#count;
    other.#count = 0;
    other.#counted.clear();
  }

  #less(): void {
    this.#count -= 1;
    if (!this.any) this.#counted.clear();
  }
}
