import type { Stored } from './stored.ts';
import type { Process } from './virtual/process.ts';

/** Watches which keys clients leave when they close. */
export class Closing {
  readonly #stored: () => readonly Stored[];
  /** The processes that close a client: its holds are lost. */
  readonly #closing = new Set<Process>();
  /** The values of entries that `holdAtLeast` may keep. */
  readonly #kept = new Set<string>();

  constructor(stored: () => readonly Stored[]) {
    this.#stored = stored;
  }

  isClosing(process: Process): boolean {
    return this.#closing.has(process);
  }

  /** The entry of a hold may stay for a while after its client. */
  keeps(key: string): void {
    for (const entry of this.#stored()) if (entry.key === key) this.#kept.add(entry.value);
  }

  /** Returns a function that returns the keys which are left when the client is closed. */
  begin(process: Process, owners: readonly string[]): () => readonly string[] {
    const present = () =>
      this.#stored()
        .filter(({ value }) => !this.#kept.has(value) && owners.some((owner) => value.includes(owner)))
        .map(({ key }) => key);
    // A key that appears while the client closes may be that of a late append.
    const before = new Set(present());
    this.#closing.add(process);
    return () => {
      this.#closing.delete(process);
      return present().filter((key) => before.has(key));
    };
  }
}
