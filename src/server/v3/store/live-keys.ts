import { type Bytes, FROM_KEY, type KeyRange } from '../bytes.ts';
import type { KeyValue } from '../messages.ts';
import { SortedKeys } from './sorted-keys.ts';

/** The keys that exist now. Removed keys cost nothing: a range looks only at the keys that are in it. */
export class LiveKeys {
  readonly #byKey = new Map<Bytes, KeyValue>();
  readonly #sorted = new SortedKeys();

  get(key: Bytes): KeyValue | undefined {
    return this.#byKey.get(key);
  }

  set(kv: KeyValue): void {
    if (!this.#byKey.has(kv.key)) this.#sorted.add(kv.key);
    this.#byKey.set(kv.key, kv);
  }

  delete(key: Bytes): void {
    if (this.#byKey.delete(key)) this.#sorted.delete(key);
  }

  /** Returns the keys of a range in order, at most `limit`. */
  range({ key, range_end: end }: KeyRange, limit = Number.POSITIVE_INFINITY): KeyValue[] {
    if (end !== '')
      return this.#sorted.range(key, endOf(end), limit).map((found) => this.#byKey.get(found) as KeyValue);
    const found = this.#byKey.get(key);
    return found && limit > 0 ? [found] : [];
  }

  /** Returns the number of keys in a range. */
  count({ key, range_end: end }: KeyRange): number {
    if (end !== '') return this.#sorted.count(key, endOf(end));
    return this.#byKey.has(key) ? 1 : 0;
  }
}

const endOf = (end: Bytes): Bytes | undefined => (end === FROM_KEY ? undefined : end);
