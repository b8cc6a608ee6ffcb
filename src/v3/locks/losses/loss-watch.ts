import { detached } from '../../../base/async-context.ts';
import { atDeadline, Deadline, now } from '../../../base/time.ts';
import type { LockRequests } from '../../rpc/requests.ts';
import { WATCH_HOLDS_AFTER } from '../timing.ts';
import { type HeldEntry, LossStream } from './loss-stream.ts';

/** Maximum number of streams of one client: each takes a socket. Further holds notice a loss only at their next renewal. */
const MAX_STREAMS = 4;

/**
 * Watches the held entries of one client, so that the deletion of one is noticed before its next renewal. Watches as many entries as
 * the streams have room for. Each key is watched by itself: a watch of the prefix would report the deletions of all clients.
 */
export class LossWatch {
  readonly #requests: LockRequests;
  readonly #streams: LossStream[] = [];
  /** The holds that no stream watches yet, each with its start time. The oldest comes first. */
  readonly #unwatched = new Map<HeldEntry, number>();
  #isPlanned = false;

  constructor(requests: LockRequests) {
    this.#requests = requests;
  }

  /** Watches an entry until it is lost, or until the returned function is called. */
  watch(hold: HeldEntry): () => void {
    this.#unwatched.set(hold, now());
    this.#plan();
    return () => this.#end(hold);
  }

  #end(hold: HeldEntry): void {
    if (this.#unwatched.delete(hold)) return;
    for (const stream of this.#streams) stream.remove(hold);
    if (this.#unwatched.size > 0) this.#plan();
  }

  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    detached(() => atDeadline(Deadline.after(WATCH_HOLDS_AFTER), this.#place, { ref: false }));
  }

  /** Adds the holds that have lasted long enough to the streams, as far as there is room. */
  readonly #place = (): void => {
    this.#isPlanned = false;
    const began = now() - WATCH_HOLDS_AFTER * 1000;
    const grown = new Set<LossStream>();
    for (const [hold, since] of this.#unwatched) {
      if (since > began) {
        this.#plan();
        break;
      }
      const stream = this.#streamFor(hold);
      if (!stream) continue;
      this.#unwatched.delete(hold);
      stream.add(hold);
      grown.add(stream);
    }
    for (const stream of grown) stream.restart();
  };

  #streamFor(hold: HeldEntry): LossStream | undefined {
    const present = this.#streams.find((stream) => stream.hasRoomFor(hold));
    if (present || this.#streams.length === MAX_STREAMS) return present;
    const stream = new LossStream(this.#requests);
    this.#streams.push(stream);
    return stream;
  }
}
