import type { LockHolder } from '../errors.ts';
import type { LockMode } from '../recipe/entry-value.ts';
import type { KeysApi } from '../v2/keys-api.ts';
import { Line } from './line.ts';
import { type Patience, Waiter } from './waiter.ts';

/** A request of this process that may stand in etcd's queue. */
export interface Turn {
  /** Its entry is in etcd's queue: whoever queues up from now on stands behind it. */
  queued(): void;
  /** Who stands in its way, or itself, for those who wait behind it. */
  holder: () => LockHolder | undefined;
  /** Its entry is gone. */
  end(): void;
}

/**
 * The requests of this process for one lock, first come first served. A request for it alone enters etcd's queue when no
 * earlier one of this process is in there for it alone; requests to share it enter together. So any number of them cost one
 * key, and other processes get their turn in between.
 */
export class LocalQueue {
  readonly #waiting = new Line<Waiter<Turn>>();
  readonly #inside = new Set<Turn>();
  readonly #onIdle: () => void;
  #hasWriter = false;
  /** How many entered whose place in etcd's queue is not known yet. */
  #arriving = 0;

  constructor(onIdle: () => void) {
    this.#onIdle = onIdle;
  }

  /** Whether {@link LocalQueue.enter} would not wait. */
  admits(mode: LockMode): boolean {
    return !this.#waiting.first && this.#mayEnter(mode);
  }

  /** Who stands in the way of those that wait here. */
  readonly holder = (): LockHolder | undefined => {
    const [first] = this.#inside;
    return first?.holder();
  };

  /**
   * Waits for its turn.
   * @throws what ended the wait before
   */
  enter(mode: LockMode, patience: Patience): Promise<Turn> {
    return new Promise((resolve, reject) => {
      const ended = [patience.signal, patience.closing].find((signal) => signal?.aborted);
      if (ended) {
        reject(ended.reason);
        return this.#admit();
      }
      if (this.admits(mode)) return resolve(this.#turnOf(mode));
      const waiter = new Waiter<Turn>(mode, patience, {
        enter: resolve,
        leave: (reason) => {
          this.#waiting.remove(waiter);
          reject(reason);
          this.#admit();
        },
      });
      this.#waiting.add(waiter);
    });
  }

  #admit(): void {
    for (let { first } = this.#waiting; first && this.#mayEnter(first.mode); first = this.#waiting.first) {
      this.#waiting.remove(first);
      first.enter(this.#turnOf(first.mode));
    }
    if (this.#inside.size === 0) this.#onIdle();
  }

  /** A writer stands behind the readers in etcd's queue, where readers of other processes cannot overtake it any more. */
  #mayEnter(mode: LockMode): boolean {
    return !this.#hasWriter && (mode === 'shared' || this.#arriving === 0);
  }

  #turnOf(mode: LockMode): Turn {
    let arriving = true;
    if (mode === 'exclusive') this.#hasWriter = true;
    this.#arriving += 1;
    const queued = () => {
      if (!arriving) return;
      arriving = false;
      this.#arriving -= 1;
      this.#admit();
    };
    const end = () => {
      if (!this.#inside.delete(turn)) return;
      if (mode === 'exclusive') this.#hasWriter = false;
      queued();
      this.#admit();
    };
    const turn: Turn = { queued, end, holder: () => undefined };
    this.#inside.add(turn);
    return turn;
  }
}

const queues = new WeakMap<KeysApi, Map<string, LocalQueue>>();

/** The queue of this process for the lock at `path`, shared by all who use the same client. */
export function localQueue(keys: KeysApi, path: string): LocalQueue {
  const ofClient = queues.get(keys) ?? new Map<string, LocalQueue>();
  queues.set(keys, ofClient);
  const queue = ofClient.get(path) ?? new LocalQueue(() => ofClient.delete(path));
  ofClient.set(path, queue);
  return queue;
}
