import type { LockMode } from '../../src/recipe/entries/entry-value.ts';

/** A resource that fails when one user writes it while another uses it. */
export class SharedResource {
  #readers = 0;
  #writers = 0;

  /** @throws {Error} when another use that conflicts with this one overlaps with its start or its end */
  async use<T>(mode: LockMode, work: () => Promise<T>): Promise<T> {
    this.#add(mode, 1);
    try {
      this.#check();
      const result = await work();
      this.#check();
      return result;
    } finally {
      this.#add(mode, -1);
    }
  }

  #add(mode: LockMode, count: number): void {
    if (mode === 'exclusive') this.#writers += count;
    else this.#readers += count;
  }

  #check(): void {
    if (this.#writers > 1 || (this.#writers === 1 && this.#readers > 0))
      throw new Error(`${this.#writers} writers and ${this.#readers} readers at a time`);
  }
}
