import { pause, Scope } from '../../../base/cancellation.ts';
import { createDebug } from '../../../base/debug.ts';
import { atDeadline, Backoff, Deadline, now } from '../../../base/time.ts';
import { EtcdConnectionFailed } from '../../../errors.ts';
import type { OwnEntry } from '../../../recipe/store.ts';
import type { Neighbours } from '../../rpc/entry.ts';
import type { LockRequests } from '../../rpc/requests.ts';
import { READS_A_TRANSACTION } from '../../rpc/single-keys.ts';
import type { WatchMessage } from '../../rpc/watch-stream.ts';
import { whyLost } from '../loss-reason.ts';
import { WATCH_HOLDS_FOR, WATCHES_BEGIN_WITHIN } from '../timing.ts';

const debug = createDebug('watch');

/** A held entry that is watched. */
export interface HeldEntry {
  readonly own: OwnEntry;
  /** Called once if a read has shown that the entry is gone or no longer the same. */
  readonly onLost: (why: Error) => void;
}

/** Maximum bytes of a stream's request. etcd ignores what arrives after its first answer; this much arrives at once. */
const MAX_BYTES = 8000;
/** Bytes of a watch in the request, without its key. */
const BYTES_A_WATCH = 100;

/** Abort reasons of a cycle, which is one read and the watch after it. The first two are not failures. */
const SILENT = new Error('no event in time');
const GROWN = new Error('the watched entries have changed');
const INCOMPLETE = new EtcdConnectionFailed('the watches did not begin in time');

/** Milliseconds. Watches that lasted for this long have worked: if they fail then, the next ones begin without a long pause. */
const WORKED = 5_000;

const keysOf = (holds: Iterable<HeldEntry>): ReadonlySet<string> => new Set([...holds].map(({ own }) => own.key));

/** Returns how many bytes the watch of a hold takes in the request of its stream. */
const bytesOf = ({ own }: HeldEntry): number => BYTES_A_WATCH + Math.ceil(Buffer.byteLength(own.key) / 3) * 4;

/** Watches a limited number of held entries with one stream. A stream cannot get more entries, so a new one replaces it. */
export class LossStream {
  readonly #requests: LockRequests;
  readonly #holds = new Set<HeldEntry>();
  readonly #backoff = new Backoff({ first: 50, most: 5_000 });
  /** When all watches of the current cycle had begun. */
  #begunAt: number | undefined;
  /** Whether an event was reported since a read last showed a loss. */
  #isDoubtful = false;
  #bytes = 0;
  /** Ends the current read, watch or pause when it aborts. */
  #cycle: Scope | undefined;

  constructor(requests: LockRequests) {
    this.#requests = requests;
  }

  hasRoomFor(hold: HeldEntry): boolean {
    return this.#holds.size < READS_A_TRANSACTION && this.#bytes + bytesOf(hold) <= MAX_BYTES;
  }

  /** Adds a hold. It is watched after {@link LossStream.restart}. */
  add(hold: HeldEntry): void {
    this.#holds.add(hold);
    this.#bytes += bytesOf(hold);
  }

  /** Removes a hold. Ends the stream if that was the last one. */
  remove(hold: HeldEntry): void {
    if (!this.#holds.delete(hold)) return;
    this.#bytes -= bytesOf(hold);
    if (this.#holds.size === 0) this.#cycle?.abort(GROWN);
  }

  /** Begins to watch all holds that were added, with a new stream. */
  restart(): void {
    if (this.#cycle) this.#cycle.abort(GROWN);
    else void this.#run();
  }

  async #run(): Promise<void> {
    const { closing } = this.#requests.gateway.pending;
    while (this.#holds.size > 0 && !closing.aborted) {
      const cycle = new Scope(closing);
      this.#cycle = cycle;
      const failure = await this.#watch(cycle).catch((error: unknown) => error);
      cycle.dispose();
      const hasWorked = this.#begunAt !== undefined && now() >= this.#begunAt + WORKED;
      if (hasWorked) this.#isDoubtful = false;
      if (hasWorked || (this.#begunAt !== undefined && cycle.reason === GROWN)) this.#backoff.reset();
      if (cycle.reason === SILENT || cycle.reason === GROWN) continue;
      if (failure) debug('watch of held entries failed: %s', failure);
      // Read at once after an event. Pause if events repeat although no entry is lost.
      const isNews = !failure && !this.#isDoubtful;
      this.#isDoubtful ||= isNews;
      if (isNews) continue;
      // A hold that is added meanwhile is read at once.
      const rest = new Scope(closing);
      this.#cycle = rest;
      await pause(this.#backoff.next(), rest);
      rest.dispose();
    }
    this.#cycle = undefined;
  }

  /** Reads the entries and reports those that are lost, then watches the others. Resolves when one of them may be lost. */
  async #watch(cycle: Scope): Promise<void> {
    const call = { lane: 'background', background: true, signal: cycle } as const;
    this.#begunAt = undefined;
    const asked = [...this.#holds];
    const { entries, clusterId, revision } = await this.#requests.entries.readEach([...keysOf(asked)], call);
    for (const hold of asked) this.#check(hold, { own: entries.get(hold.own.key), clusterId });
    const keys = keysOf(this.#holds);
    let begun = 0;
    const cancel = atDeadline(Deadline.after(WATCHES_BEGIN_WITHIN), () => cycle.abort(INCOMPLETE), { ref: false });
    cycle.abortAt(Deadline.after(WATCH_HOLDS_FOR), () => SILENT, { ref: false });
    const until = ({ isCreated, isCompacted, events }: WatchMessage): boolean => {
      if (isCreated) begun += 1;
      if (begun === keys.size) {
        cancel();
        this.#begunAt ??= now();
      }
      const held = keysOf(this.#holds);
      return isCompacted || events.some(({ key, written }) => !written && held.has(key));
    };
    try {
      await this.#requests.watches.deletions([...keys], { ...call, from: revision + 1n, until });
    } finally {
      cancel();
    }
  }

  #check(hold: HeldEntry, read: Pick<Neighbours, 'own' | 'clusterId'>): void {
    // The hold may have ended during the read.
    const why = this.#holds.has(hold) ? whyLost(hold.own, read) : undefined;
    if (!why) return;
    this.#backoff.reset();
    this.#isDoubtful = false;
    this.remove(hold);
    hold.onLost(why);
  }
}
