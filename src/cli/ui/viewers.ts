import type { ServerResponse } from 'node:http';
import { Board } from './board.ts';
import { type LiveStore, type QueueBasis, queueOf } from './encode.ts';
import { frame, jsonIn } from './frame.ts';
import { OpenQueue } from './open-queue.ts';

export interface ViewersOptions {
  /** Milliseconds after which a viewer that takes nothing of what was sent is cut off. Default 60,000. */
  readonly patience?: number;
  /** Whether viewers may release entries. Default false. */
  readonly mayRelease?: boolean;
}

/** Number of streams at a time. */
const MOST_VIEWERS = 100;
/** Milliseconds to wait for further changes before they are sent. */
const SOON = 100;
/** Bytes that wait for a viewer, beyond a snapshot, before changes are left out for it. It gets a snapshot later. */
const MOST_UNSENT = 256 * 1024;
/** Milliseconds between two signs of life. */
const PING_EVERY = 10_000;
/** Number of locks of the list whose TTLs are read. */
const MOST_READ = 20;

interface Viewer {
  readonly response: ServerResponse;
  /** Name of the lock that is open; undefined: all locks are shown. */
  readonly lock: string | undefined;
  /** Bytes that may wait now. */
  allowed: number;
  /** Since when it has taken nothing, by the clock of this host; undefined: nothing waits. */
  waitingSince: number | undefined;
  /** Whether changes were left out. */
  isBehind: boolean;
}

/** Sends what changes to all viewers, as server-sent events. Reads only the models: a viewer costs etcd nothing. */
export class Viewers {
  readonly #stores: readonly LiveStore[];
  readonly #board: Board;
  readonly #patience: number;
  readonly #viewers = new Set<Viewer>();
  /** By the name of the lock. */
  readonly #open = new Map<string, OpenQueue>();
  readonly #basis: QueueBasis;
  readonly #pings: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;

  constructor(stores: readonly LiveStore[], { patience = 60_000, mayRelease = false }: ViewersOptions = {}) {
    this.#stores = stores;
    this.#board = new Board(stores);
    this.#basis = { startedAt: Date.now(), mayRelease };
    this.#patience = patience;
    this.#pings = setInterval(() => this.#ping(), Math.min(PING_EVERY, patience)).unref();
  }

  get count(): number {
    return this.#viewers.size;
  }

  /**
   * Names of the locks of a store that somebody sees, the open ones first. Only those that have entries: etcd is not asked for whatever a
   * viewer has written into a URL.
   */
  shown(api: 'v2' | 'v3'): string[] {
    const locks = this.#stores.find((store) => store.api === api)?.model.locks ?? [];
    const names = this.#open.size === 0 ? [] : locks.map(({ name }) => name).filter((name) => this.#open.has(name));
    if ([...this.#viewers].some(({ lock }) => lock === undefined)) {
      const listed = this.#board.inTrouble(api).filter(({ isCut }) => !isCut);
      names.push(...listed.slice(0, MOST_READ).map(({ name }) => name));
    }
    return [...new Set(names)];
  }

  /** To be called after each change of a model. */
  changed(): void {
    this.#sendIn(SOON);
  }

  /** Returns all locks as JSON: a `Snapshot`. */
  snapshot(): Buffer {
    this.#send();
    return jsonIn(this.#board.snapshot());
  }

  /** Returns the queue of a lock as JSON: a `ShownQueue`. */
  queue(name: string): string {
    return JSON.stringify(queueOf(this.#stores, name, this.#basis));
  }

  /**
   * Begins a stream. Returns false, and does nothing, if there are too many, or for a pipelined request.
   * @param lock name of the lock to show; undefined: all locks
   */
  add(response: ServerResponse, lock: string | undefined): boolean {
    // A pipelined request has no socket yet, and its response would never tell that the viewer has gone.
    if (this.#viewers.size >= MOST_VIEWERS || response.socket === null) return false;
    const viewer = { response, lock, allowed: 0, waitingSince: undefined, isBehind: false };
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.on('drain', () => this.#drained(viewer));
    response.once('close', () => this.#remove(viewer));
    if (lock !== undefined && !this.#open.has(lock))
      this.#open.set(lock, new OpenQueue(this.#stores, lock, this.#basis));
    // Others must get what has changed before the snapshot.
    this.#send();
    this.#viewers.add(viewer);
    this.#sendAll(viewer);
    return true;
  }

  /** Ends all streams. */
  stop(): void {
    clearInterval(this.#pings);
    clearTimeout(this.#timer);
    for (const { response } of this.#viewers) response.destroy();
  }

  #remove(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    const { lock } = viewer;
    if (lock !== undefined && ![...this.#viewers].some((other) => other.lock === lock)) this.#open.delete(lock);
  }

  #sendIn(ms: number): void {
    this.#timer ??= setTimeout(() => this.#send(), ms);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const change = this.#board.change();
    const queues = new Map<string, Buffer | undefined>();
    for (const [name, queue] of this.#open)
      queues.set(
        name,
        queue.change((after) => this.#sendIn(after)),
      );
    for (const viewer of this.#viewers) {
      const event = viewer.lock === undefined ? change : queues.get(viewer.lock);
      if (!event) continue;
      viewer.isBehind ||= viewer.response.writableLength > viewer.allowed;
      if (!viewer.isBehind) write(viewer, event);
    }
  }

  /** Sends all that the viewer sees. */
  #sendAll(viewer: Viewer): void {
    const { lock } = viewer;
    const event = lock === undefined ? this.#board.snapshot() : this.#open.get(lock)?.all();
    if (!event) return;
    viewer.isBehind = false;
    viewer.allowed = event.length + MOST_UNSENT;
    write(viewer, event);
  }

  #drained(viewer: Viewer): void {
    viewer.waitingSince = undefined;
    viewer.allowed = MOST_UNSENT;
    if (!viewer.isBehind) return;
    this.#send();
    this.#sendAll(viewer);
  }

  #ping(): void {
    const ping = frame('ping', `{"now":${Date.now()}}`);
    for (const viewer of this.#viewers) {
      const { response, waitingSince } = viewer;
      if (waitingSince === undefined) write(viewer, ping);
      else if (Date.now() - waitingSince >= this.#patience) response.destroy();
    }
  }
}

/** Writes an event. Its bytes, which viewers share, are not copied. */
function write(viewer: Viewer, event: Buffer): void {
  if (!viewer.response.write(event)) viewer.waitingSince ??= Date.now();
}
