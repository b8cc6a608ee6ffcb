import type { StoreEvent } from './history.ts';

/** A client that waits for one event, or for each. */
export interface Watcher {
  readonly key: string;
  readonly recursive: boolean;
  /** Stays registered after an event. Default false. */
  readonly stream?: boolean;
  /** Events with a lower index do not count. */
  readonly since: number;
  readonly notify: (event: StoreEvent) => void;
}

/** Who waits, by the key they wait on: an event costs what its path is long, not what there are waiters. */
export class Watchers {
  readonly #byKey = new Map<string, Set<Watcher>>();

  get count(): number {
    return [...this.#byKey.values()].reduce((count, watchers) => count + watchers.size, 0);
  }

  add(watcher: Watcher): void {
    const watchers = this.#byKey.get(watcher.key);
    if (watchers) watchers.add(watcher);
    else this.#byKey.set(watcher.key, new Set([watcher]));
  }

  remove(watcher: Watcher): void {
    const watchers = this.#byKey.get(watcher.key);
    if (watchers?.delete(watcher) && watchers.size === 0) this.#byKey.delete(watcher.key);
  }

  /** Wakes who waits for the key of the event, or recursively for one above it, unless the key is hidden from there. */
  changed(event: StoreEvent): void {
    const { key } = event.node;
    for (let end = key.indexOf('/', 1); end !== -1; end = key.indexOf('/', end + 1))
      this.#wakeAbove(key.slice(0, end), event);
    this.#wakeAbove('/', event);
    this.#wakeAll(key, event);
  }

  /** Wakes who waits for a key that is gone with the one of the event. */
  removed(key: string, event: StoreEvent): void {
    this.#wakeAll(key, event);
  }

  #wakeAbove(dir: string, event: StoreEvent): void {
    // Looked up before anything else: a key may have very many parts, and hardly one of them is watched.
    const watchers = this.#byKey.get(dir);
    if (!watchers || isHidden(event.node.key, dir)) return;
    for (const watcher of watchers) if (watcher.recursive) this.#wake(watcher, event);
  }

  #wakeAll(key: string, event: StoreEvent): void {
    for (const watcher of this.#byKey.get(key) ?? []) this.#wake(watcher, event);
  }

  #wake(watcher: Watcher, event: StoreEvent): void {
    if (event.node.modifiedIndex < watcher.since) return;
    if (!watcher.stream) this.remove(watcher);
    watcher.notify(event);
  }
}

/** Whether a name begins with an underscore on the way from the directory down to the key. */
const isHidden = (key: string, dir: string): boolean => key.indexOf('/_', dir === '/' ? 0 : dir.length) !== -1;
