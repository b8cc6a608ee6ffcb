import type { StoreEvent } from './history.ts';

/** A watch in progress, for one event or for every event. */
export interface Watcher {
  readonly key: string;
  readonly recursive: boolean;
  /** Stays registered after an event. Default false. */
  readonly stream?: boolean;
  /** Lowest index of an event to report. */
  readonly since: number;
  readonly notify: (event: StoreEvent) => void;
}

/** Watchers by key. The cost of an event grows with the depth of its key, not with the watchers of other keys. */
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

  /**
   * Notifies watchers of the event's key, and recursive watchers of each directory above it. Omits a directory below which the
   * key is hidden.
   */
  changed(event: StoreEvent): void {
    const { key } = event.node;
    for (let end = key.indexOf('/', 1); end !== -1; end = key.indexOf('/', end + 1))
      this.#notifyAbove(key.slice(0, end), event);
    this.#notifyAbove('/', event);
    this.#notifyAll(key, event);
  }

  /** Notifies watchers of a key that was removed together with the event's key. */
  removed(key: string, event: StoreEvent): void {
    this.#notifyAll(key, event);
  }

  #notifyAbove(dir: string, event: StoreEvent): void {
    // Check for watchers first, for speed: a key may be below very many directories, and most of them have no watchers.
    const watchers = this.#byKey.get(dir);
    if (!watchers || isHidden(event.node.key, dir)) return;
    for (const watcher of watchers) if (watcher.recursive) this.#notify(watcher, event);
  }

  #notifyAll(key: string, event: StoreEvent): void {
    for (const watcher of this.#byKey.get(key) ?? []) this.#notify(watcher, event);
  }

  #notify(watcher: Watcher, event: StoreEvent): void {
    if (event.node.modifiedIndex < watcher.since) return;
    if (!watcher.stream) this.remove(watcher);
    watcher.notify(event);
  }
}

/** Whether any name in the key below `dir` begins with an underscore. */
const isHidden = (key: string, dir: string): boolean => key.indexOf('/_', dir === '/' ? 0 : dir.length) !== -1;
