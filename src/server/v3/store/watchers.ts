import { type Bytes, isIn, type KeyRange } from '../bytes.ts';
import type { Change } from './history.ts';

/** A watch of changes from now on. */
export interface Watcher {
  readonly range: KeyRange;
  /** Least revision to report. */
  readonly from: bigint;
  /** Gets the changes of one revision that are in the range. */
  readonly notify: (changes: readonly Change[], revision: bigint) => void;
}

/** The watchers of the store. A change of a key costs nothing for watchers of other single keys. */
export class Watchers {
  readonly #ofKey = new Map<Bytes, Set<Watcher>>();
  readonly #ofRange = new Set<Watcher>();

  get size(): number {
    let size = this.#ofRange.size;
    for (const watchers of this.#ofKey.values()) size += watchers.size;
    return size;
  }

  add(watcher: Watcher): void {
    const { key, range_end: end } = watcher.range;
    if (end !== '') {
      this.#ofRange.add(watcher);
      return;
    }
    const watchers = this.#ofKey.get(key);
    if (watchers) watchers.add(watcher);
    else this.#ofKey.set(key, new Set([watcher]));
  }

  remove(watcher: Watcher): void {
    const { key } = watcher.range;
    this.#ofRange.delete(watcher);
    const watchers = this.#ofKey.get(key);
    if (watchers?.delete(watcher) && watchers.size === 0) this.#ofKey.delete(key);
  }

  /** Reports the changes of a revision, to each watcher at once those that are in its range. */
  report(revision: bigint, changes: readonly Change[]): void {
    const ofKeys = new Set<Watcher>();
    for (const { kv } of changes) for (const watcher of this.#ofKey.get(kv.key) ?? []) ofKeys.add(watcher);
    for (const watchers of [this.#ofRange, ofKeys])
      for (const watcher of watchers) if (revision >= watcher.from) report(watcher, revision, changes);
  }
}

function report(watcher: Watcher, revision: bigint, changes: readonly Change[]): void {
  let own: Change[] | undefined;
  for (const change of changes)
    if (isIn(watcher.range, change.kv.key)) {
      own ??= []; // most watchers get nothing
      own.push(change);
    }
  if (own) watcher.notify(own, revision);
}
