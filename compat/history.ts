/** An entry in terms that do not depend on the run. */
export interface Entry {
  /** Which key of this queue, in the order of their numbers: 1 is the first one ever made. */
  readonly key: number;
  /** Whose: the first uuid seen in this queue is A. */
  readonly owner: string;
  /** In steps of 10 s, so that the pace of a run does not matter; null: it never expires. */
  readonly ttl: number | null;
}

export interface Append {
  readonly method: string;
  /** Decoded. */
  readonly path: string;
  readonly fields: Record<string, string>;
}

/** What happened to one queue. */
export interface History {
  readonly appends: Append[];
  /** Every state it was in, in order, the first one (empty) excepted. */
  readonly states: (readonly Entry[])[];
}

/** By directory. */
export type Histories = Record<string, History>;

export interface SeenEntry {
  readonly key: string;
  readonly value: string;
  readonly ttl?: number;
}

/** Makes a history from what was seen of one queue. */
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

  /** The entries in the order of their keys. A state that equals the one before is none. */
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

/** Counted from 1; one that is new is given the next number. */
function numberIn(seen: string[], item: string): number {
  if (!seen.includes(item)) seen.push(item);
  return seen.indexOf(item) + 1;
}
