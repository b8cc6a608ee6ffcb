import { OutOfMemory } from '../../served-keys.ts';
import type { EtcdVersion } from '../../version.ts';
import { FROM_KEY, type KeyRange } from '../bytes.ts';
import * as errors from '../errors.ts';
import type * as api from '../messages.ts';
import { type Change, FIRST_REVISION } from '../store/history.ts';
import type { V3Store } from '../store/store.ts';
import type { Watcher } from '../store/watchers.ts';
import { eventsOf, missedIn, piecesOf, type Wanted } from './events.ts';

/** Where the answers of watches go. */
export interface WatchOutput {
  /** Returns the header of an answer. */
  readonly headerAt: (revision: bigint | undefined) => api.ResponseHeader;
  /** @throws {EtcdV3Refusal} if the user may not watch the range */
  readonly check: (range: KeyRange) => void;
  readonly send: (response: api.WatchResponse) => void;
  /** Whether the client has taken most of the answers. Call {@link WatchStream.resume} when it has done so again. */
  readonly isReady: () => boolean;
  /** Takes memory for as long as the stream lasts. Returns false, and takes nothing, if there is not enough. */
  readonly take: (bytes: number) => boolean;
  /** Returns memory before the end of the stream. */
  readonly give: (bytes: number) => void;
}

/** Id of a watch that was refused, and of an answer that concerns all watches. */
const NO_WATCH = -1n;

const [NO_PUT, NO_DELETE] = [0, 1];

/** Maximum number of watches of a stream. etcd has no limit. */
const MOST_WATCHES = 10_000;

/** Memory that a watch costs. */
const WATCH_COST = 1024;

/** Maximum number of revisions whose events one answer contains when a watch catches up. */
const MOST_REVISIONS = 1000;

/** gRPC's name of a code, as it stands in etcd's reasons. */
const CODE_NAMES: Readonly<Record<number, string>> = {
  3: 'InvalidArgument',
  7: 'PermissionDenied',
  16: 'Unauthenticated',
};

interface Watch {
  readonly id: bigint;
  readonly watcher: Watcher;
  /** As requested; 0: from the next revision on. */
  readonly start: bigint;
  /** Which events it gets. */
  readonly wanted: Wanted;
  /** Whether reports of progress are wanted. */
  readonly progress: boolean;
  /** Whether large answers may come in pieces. */
  readonly fragments: boolean;
  /** Whether an answer was sent since the last report of progress. */
  isActive: boolean;
  /** Whether it was canceled because its events were compacted. Like etcd, the stream knows its id until the client cancels it. */
  isCompacted: boolean;
}

/** The watches of one stream. */
export class WatchStream {
  readonly #store: V3Store;
  readonly #output: WatchOutput;
  readonly #version: EtcdVersion;
  readonly #watches = new Map<bigint, Watch>();
  /**
   * Those that are behind because the client is slow, each with the first revision whose events have not been sent. The first watch
   * catches up first, so that each has its turn.
   */
  readonly #behind = new Map<Watch, bigint>();
  #nextId = 0n;

  constructor(store: V3Store, output: WatchOutput, version: EtcdVersion) {
    this.#store = store;
    this.#output = output;
    this.#version = version;
  }

  /** Carries out one request of the stream. One that asks for nothing is ignored. */
  take({ create_request: created, cancel_request: canceled, progress_request: progress }: api.WatchRequest): void {
    if (created) this.#create(created);
    else if (canceled) this.#cancel(canceled.watch_id);
    else if (progress && this.#canReport()) this.#send(NO_WATCH, {});
  }

  /** Sends the events that slow watches have missed, as far as the client takes them. */
  resume(): void {
    for (const [watch, since] of this.#behind) {
      if (!this.#output.isReady()) return;
      this.#catchUp(watch, since);
    }
  }

  /** Tells the revision to the watches that want that and had no events since the last time. */
  reportProgress(): void {
    for (const watch of this.#watches.values()) {
      if (watch.progress && !watch.isActive && this.#isUpToDate(watch)) this.#send(watch.id, {});
      watch.isActive = false;
    }
  }

  /** Ends all watches, without an answer. */
  end(): void {
    for (const { watcher } of this.#watches.values()) this.#store.unwatch(watcher);
    this.#output.give(WATCH_COST * this.#watches.size);
    this.#watches.clear();
    this.#behind.clear();
  }

  #create(request: api.WatchCreateRequest): void {
    const { key, range_end: end, start_revision: start } = request;
    // The byte 0 is the smallest key.
    const range = { key: key === '' ? FROM_KEY : key, range_end: end };
    const refusal = this.#refusalOf(request, range);
    if (refusal !== undefined) {
      this.#send(NO_WATCH, { created: true, canceled: true, cancel_reason: refusal });
      return;
    }
    const id = request.watch_id === 0n ? this.#newId() : request.watch_id;
    const from = start === 0n ? this.#store.revision + 1n : start;
    const notify = (changes: readonly Change[], revision: bigint) => this.#notify(watch, changes, revision);
    const watcher = { range, from, notify };
    const watch: Watch = {
      id,
      watcher,
      start,
      wanted: {
        puts: !request.filters.includes(NO_PUT),
        removals: !request.filters.includes(NO_DELETE),
        previous: request.prev_kv,
      },
      progress: request.progress_notify,
      fragments: request.fragment,
      isActive: false,
      isCompacted: false,
    };
    this.#watches.set(id, watch);
    this.#store.watch(watch.watcher);
    this.#send(id, { created: true });
    this.#catchUp(watch, from);
  }

  #refusalOf(request: api.WatchCreateRequest, range: KeyRange): string | undefined {
    const { range_end: end, watch_id: id, start_revision: start } = request;
    if (start < 0n && this.#version !== '3.4') return errors.compacted().message;
    try {
      this.#output.check(range);
    } catch (error) {
      if (!(error instanceof errors.EtcdV3Refusal)) throw error;
      return `rpc error: code = ${CODE_NAMES[error.code]} desc = ${error.message}`;
    }
    if (end !== '' && end !== FROM_KEY && range.key >= end) return 'mvcc: watcher range is empty';
    if (this.#watches.size >= MOST_WATCHES) return `limit of ${MOST_WATCHES} watches of one stream reached`;
    if (this.#watches.has(id) && id !== 0n) return 'mvcc: duplicate watch ID provided on the WatchStream';
    return this.#output.take(WATCH_COST) ? undefined : new OutOfMemory().message;
  }

  /** Whether a request for progress gets an answer: from etcd 3.5 on, only if all watches of the stream have begun and are up to date. */
  #canReport(): boolean {
    if (this.#version === '3.4') return true;
    const watches = [...this.#watches.values()];
    const hasBegun = ({ start }: Watch) => start <= this.#store.revision;
    return watches.length > 0 && watches.every((watch) => hasBegun(watch) && this.#isUpToDate(watch));
  }

  #newId(): bigint {
    while (this.#watches.has(this.#nextId)) this.#nextId += 1n;
    this.#nextId += 1n;
    return this.#nextId - 1n;
  }

  #cancel(id: bigint): void {
    if (this.#remove(id)) this.#send(id, { canceled: true });
  }

  #remove(id: bigint): boolean {
    const watch = this.#watches.get(id);
    if (!watch) return false;
    this.#watches.delete(id);
    this.#behind.delete(watch);
    this.#store.unwatch(watch.watcher);
    this.#output.give(WATCH_COST);
    return true;
  }

  #notify(watch: Watch, changes: readonly Change[], revision: bigint): void {
    if (this.#behind.has(watch)) return;
    if (this.#output.isReady()) this.#report(watch, changes);
    else this.#behind.set(watch, revision);
  }

  /** Sends the events of a watch since a revision, as far as the client takes them. */
  #catchUp(watch: Watch, since: bigint): void {
    try {
      for (let next = since; next <= this.#store.revision; ) {
        this.#behind.set(watch, next);
        if (!this.#output.isReady()) return;
        const { changes, revisions } = missedIn(watch.watcher.range, this.#store.since(next, MOST_REVISIONS));
        next = (next > FIRST_REVISION ? next : FIRST_REVISION + 1n) + revisions;
        this.#report(watch, changes);
      }
    } catch (error) {
      if (!(error instanceof errors.EtcdV3Refusal)) throw error;
      this.#store.unwatch(watch.watcher);
      watch.isCompacted = true;
      const header = this.#output.headerAt(undefined);
      this.#output.send({ header, watch_id: watch.id, canceled: true, compact_revision: this.#store.compacted });
    }
    this.#behind.delete(watch);
  }

  #report(watch: Watch, changes: readonly Change[]): void {
    const events = eventsOf(changes, watch.wanted, this.#store.compacted);
    if (events.length === 0) return;
    watch.isActive = true;
    const pieces = watch.fragments ? piecesOf(events) : [events];
    for (const [i, piece] of pieces.entries()) this.#send(watch.id, { events: piece, fragment: i < pieces.length - 1 });
  }

  #isUpToDate(watch: Watch): boolean {
    return !this.#behind.has(watch) && !watch.isCompacted;
  }

  #send(watchId: bigint, response: Omit<api.WatchResponse, 'header' | 'watch_id'>): void {
    this.#output.send({ header: this.#output.headerAt(this.#store.revision), watch_id: watchId, ...response });
  }
}
