import type { Bytes } from '../bytes.ts';

/** Maximum number of keys in one list. */
const MOST = 512;

/** Where a key is, or would be: number of its list, and position in it. */
type Place = readonly [list: number, at: number];

/**
 * Keys in order, in lists of limited length: in one long list, each new key would move all keys behind it, and a client can write a
 * hundred thousand.
 */
export class SortedKeys {
  /** None is empty. */
  readonly #lists: Bytes[][] = [];

  /** Adds a key that is not there. */
  add(key: Bytes): void {
    const [list] = this.#lists;
    if (!list) return void this.#lists.push([key]);
    const [number, at] = this.#place(key);
    const keys = this.#lists[number] as Bytes[];
    keys.splice(at, 0, key);
    if (keys.length > MOST) this.#lists.splice(number + 1, 0, keys.splice(MOST / 2));
  }

  /** Removes a key that is there. */
  delete(key: Bytes): void {
    const [number, at] = this.#place(key);
    const keys = this.#lists[number] as Bytes[];
    keys.splice(at, 1);
    if (keys.length === 0) this.#lists.splice(number, 1);
  }

  /** Returns the keys from `start` on and before `end`, at most `limit`. @param end undefined: up to the last one */
  range(start: Bytes, end: Bytes | undefined, limit: number): Bytes[] {
    const found: Bytes[] = [];
    for (const [keys, from, to] of this.#parts(start, end)) {
      for (let at = from; at < to; at += 1) {
        if (found.length >= limit) return found;
        found.push(keys[at] as Bytes);
      }
    }
    return found;
  }

  /** Returns the number of keys from `start` on and before `end`. */
  count(start: Bytes, end: Bytes | undefined): number {
    let count = 0;
    for (const [, from, to] of this.#parts(start, end)) count += to - from;
    return count;
  }

  /** Yields the parts of the lists that are in a range. */
  *#parts(start: Bytes, end: Bytes | undefined): Iterable<readonly [keys: readonly Bytes[], from: number, to: number]> {
    if (this.#lists.length === 0 || (end !== undefined && end <= start)) return;
    const [first, from] = this.#place(start);
    const [last, to] = end === undefined ? [this.#lists.length, 0] : this.#place(end);
    for (let number = first; number <= Math.min(last, this.#lists.length - 1); number += 1) {
      const keys = this.#lists[number] as Bytes[];
      yield [keys, number === first ? from : 0, number === last ? to : keys.length];
    }
  }

  /** Returns the place of the first key that is not less than `key`. There must be a list. */
  #place(key: Bytes): Place {
    // The last list that begins before the key.
    const number = Math.max(0, lowest(this.#lists.length, (i) => (this.#lists[i]?.[0] as Bytes) > key) - 1);
    const keys = this.#lists[number] as Bytes[];
    return [number, lowest(keys.length, (i) => (keys[i] as Bytes) >= key)];
  }
}

/** Returns the lowest number from 0 on for which `is` returns true; `end` if there is none. */
function lowest(end: number, is: (number: number) => boolean): number {
  let [low, high] = [0, end];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (is(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
