import { detached } from '../../base/async-context.ts';
import { createDebug } from '../../base/debug.ts';
import { type Clock, type Deadline, systemClock } from '../../base/time.ts';
import { EtcdDirNotEmpty, EtcdKeyNotFound, mayPass } from '../../errors.ts';
import type { KeysApi } from '../keys-api.ts';
import { isBelow } from '../paths.ts';

const debug = createDebug('lock');

/** Milliseconds without an own entry after which a lock counts as unused. A lock that is used more often costs no request. */
const UNUSED_AFTER = 15_000;

/** Milliseconds from one batch of removals to the next. */
const BATCH_EVERY = 1_000;

/** Maximum removals in a batch. Each one uses up an event of etcd's history of 1000, which waiters of all locks need. */
const BATCH = 120;

/** Maximum requests of a batch at a time. */
const AT_ONCE = 4;

/** Maximum number of directories to remember. Beyond that, those unused for longest stay. */
const MAX_DIRECTORIES = 100_000;

/**
 * Removes the directories of locks that this client has not used for some time, in the background, if they are empty. etcd itself
 * removes no directory, and each listing of all locks contains all of them.
 *
 * Safe beside other clients: etcd refuses to remove a directory that has an entry, and an append creates the directory again. The
 * order of entries comes from etcd's index, not from the directory. A directory in use by others is left to them. But etcd would
 * remove a file by the same request, so each directory is read first.
 */
export class UnusedDirectories {
  readonly #keys: KeysApi;
  readonly #clock: Clock;
  /** When to remove each directory, in milliseconds of the clock. The one longest unused comes first. */
  readonly #due = new Map<string, number>();
  #waiting = false;

  constructor(keys: KeysApi, clock: Clock = systemClock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /**
   * Schedules the removal of the directory of a lock, in which this client has had an entry. Replaces an earlier schedule.
   * @param until when the last entry of this client expires; undefined if it has been removed
   */
  add(path: string, until?: Deadline): void {
    this.#due.delete(path);
    const [longestUnused] = this.#due.keys();
    if (longestUnused !== undefined && this.#due.size >= MAX_DIRECTORIES) this.#due.delete(longestUnused);
    this.#due.set(path, this.#clock.now() + (until?.remaining ?? 0) + UNUSED_AFTER);
    this.#wait(BATCH_EVERY);
  }

  #wait(ms: number): void {
    if (this.#waiting || this.#due.size === 0 || this.#keys.cleanups.closing.aborted) return;
    this.#waiting = true;
    detached(() => this.#clock.after(ms, () => void this.#removeBatch()));
  }

  async #removeBatch(): Promise<void> {
    const startedAt = this.#clock.now();
    let pause = BATCH_EVERY;
    try {
      const due = this.#nextBatch();
      while (due.length > 0) await Promise.all(due.splice(0, AT_ONCE).map((path) => this.#remove(path)));
    } catch (error) {
      debug('directories of unused locks not removed yet: %s', error);
      pause = UNUSED_AFTER;
    }
    this.#waiting = false;
    this.#wait(Math.max(0, startedAt + pause - this.#clock.now()));
  }

  #nextBatch(): string[] {
    const batch: string[] = [];
    const now = this.#clock.now();
    for (const [path, at] of this.#due) {
      if (at <= now) batch.push(path);
      if (batch.length === BATCH) break;
    }
    return batch;
  }

  /** @throws an error that a later attempt may not get */
  async #remove(path: string): Promise<void> {
    const at = this.#due.get(path);
    let removed = false;
    try {
      removed = await this.#removeIfEmpty(path);
    } catch (error) {
      if (mayPass(error)) throw error;
      // Others use it, or have removed it, or this user may not.
      if (!(error instanceof EtcdDirNotEmpty || error instanceof EtcdKeyNotFound))
        debug('the directory %s stays: %s', path, error);
    }
    // Used again meanwhile: then it has another time.
    if (this.#due.get(path) === at) this.#due.delete(path);
    const parent = path.slice(0, path.lastIndexOf('/'));
    if (removed && isBelow(parent, this.#keys.lockPrefix)) this.add(parent);
  }

  async #removeIfEmpty(path: string): Promise<boolean> {
    if (this.#keys.cleanups.closing.aborted) return false;
    const { node } = await this.#keys.get(path, { background: true });
    if (!node.dir || node.nodes.length > 0) return false;
    await this.#keys.delete(path, { dir: true, background: true });
    debug('removed the directory %s of an unused lock', path);
    return true;
  }
}
