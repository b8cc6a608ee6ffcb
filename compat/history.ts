/** An entry in terms that do not depend on the run. */
export interface Entry {
  /** Position of the key among all keys this queue ever had, in the order first seen: 1 is the first. */
  readonly key: number;
  /** The owner: the first uuid seen in this queue is A. */
  readonly owner: string;
  /** Seconds, rounded up to 10 s so that the speed of a run does not matter; null: the entry never expires. */
  readonly ttl: number | null;
}

export interface Append {
  readonly method: string;
  /** Decoded. */
  readonly path: string;
  readonly fields: Record<string, string>;
}

/** The appends to one queue, and its states. */
export interface History {
  readonly appends: Append[];
  /** Every state of the queue in order, without the initial empty one. */
  readonly states: (readonly Entry[])[];
}

/** By directory. */
export type Histories = Record<string, History>;

export interface SeenEntry {
  readonly key: string;
  readonly value: string;
  readonly ttl?: number;
}

/** Builds the history of one queue from observed appends and states. */
export class Historian {
  readonly history: History = { appends: [], states: [] };
  readonly #keys: string[] = [];
  readonly #owners: string[] = [];
  #last = '[]';

  append({ method, path, body }: { method: string; path: string; body: string | null }): void {
    const { value = '', ...fields } = Object.fromEntries(new URLSearchParams(body ?? ''));
    const shown = /^[0-9a-f]{32}$/.test(value) ? '32 hex digits' : value;
    this.history.appends.push({ method, path: decodeURIComponent(path), fields: { value: shown, ...fields } });
  }

  /** Adds a state: the entries in the order of their keys. A state equal to the previous one is skipped. */
  state(entries: readonly SeenEntry[]): void {
    const state = entries.map(({ key, value, ttl }) => ({
      key: numberIn(this.#keys, key),
      owner: String.fromCharCode(64 + numberIn(this.#owners, value)),
      ttl: ttl === undefined ? null : Math.ceil(ttl / 10) * 10,
    }));
    const text = JSON.stringify(state);
    if (text !== this.#last) this.history.states.push(state);
    this.#last = text;
  }
}

/** Returns the 1-based number of the item; a new item gets the next number. */
function numberIn(seen: string[], item: string): number {
  if (!seen.includes(item)) seen.push(item);
  return seen.indexOf(item) + 1;
}
