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

  /** Wakes who waits for the key of the event, or recursively for one above it. */
  changed(event: StoreEvent): void {
    const { key } = event.node;
    this.#wake('/', event, false);
    for (let end = key.indexOf('/', 1); end !== -1; end = key.indexOf('/', end + 1))
      this.#wake(key.slice(0, end), event, false);
    if (key !== '/') this.#wake(key, event, false);
  }

  /** Wakes who waits for a key that is gone with the one of the event. */
  removed(key: string, event: StoreEvent): void {
    this.#wake(key, event, true);
  }

  #wake(key: string, event: StoreEvent, removed: boolean): void {
    // Looked up before anything else: a key may have very many parts, and hardly one of them is watched.
    const watchers = this.#byKey.get(key);
    if (!watchers) return;
    const itself = event.node.key === key;
    if (!itself && isHidden(key, event.node.key)) return;
    for (const watcher of watchers) {
      if (!(watcher.recursive || itself || removed) || event.node.modifiedIndex < watcher.since) continue;
      if (!watcher.stream) this.remove(watcher);
      watcher.notify(event);
    }
  }
}

/** Whether a part of the key below the one watched begins with an underscore. */
function isHidden(watched: string, key: string): boolean {
  return key.length > watched.length && `/${key.slice(watched.length)}`.includes('/_');
}
