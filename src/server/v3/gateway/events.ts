/** Which events one answer to a watch contains. */
import { isIn, type KeyRange, sizeOf } from '../bytes.ts';
import type * as api from '../messages.ts';
import { type Change, sizeOfChange } from '../store/history.ts';

/**
 * Bytes of keys and values from which on an answer is sent in pieces if the client wants that, and contains no further revision when a
 * watch catches up.
 */
const LARGE = 1.5 * 2 ** 20;

/** What a watch wants of the changes in its range. */
export interface Wanted {
  readonly puts: boolean;
  readonly removals: boolean;
  /** Whether each event has the key as it was before. */
  readonly previous: boolean;
}

/** Changes for one answer to a watch that catches up, and the number of revisions that they are from. */
export interface Missed {
  readonly changes: readonly Change[];
  readonly revisions: bigint;
}

/** Returns the changes in a range, up to the revision with which they are large. */
export function missedIn(range: KeyRange, since: readonly (readonly Change[])[]): Missed {
  const changes: Change[] = [];
  let [revisions, size] = [0n, 0];
  for (const all of since) {
    for (const change of all) {
      if (!isIn(range, change.kv.key)) continue;
      changes.push(change);
      size += sizeOfChange(change);
    }
    revisions += 1n;
    if (size > LARGE) break;
  }
  return { changes, revisions };
}

/** Returns the events of changes. @param compacted the revision that the store was compacted at */
export const eventsOf = (changes: readonly Change[], wanted: Wanted, compacted: bigint): readonly api.Event[] =>
  changes
    .filter(({ isRemoval }) => (isRemoval ? wanted.removals : wanted.puts))
    .map((change) => ({
      type: change.isRemoval ? 1 : 0,
      kv: change.kv,
      prev_kv: wanted.previous ? previousOf(change, changes, compacted) : undefined,
    }));

/**
 * Returns a key as it was before the revision of a change, in which it may have changed more than once. A key that is created has none,
 * and one whose past was compacted.
 */
function previousOf({ kv, previous }: Change, changes: readonly Change[], compacted: bigint): api.KeyValue | undefined {
  if (kv.mod_revision <= compacted || kv.create_revision === kv.mod_revision) return undefined;
  if (previous?.mod_revision !== kv.mod_revision) return previous;
  return changes.find((other) => other.kv.key === kv.key && other.kv.mod_revision === kv.mod_revision)?.previous;
}

/** Splits events so that each piece is not large, or is a single event. */
export function piecesOf(events: readonly api.Event[]): readonly (readonly api.Event[])[] {
  const pieces: api.Event[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const event of events) {
    const more = sizeOf(event.kv) + (event.prev_kv ? sizeOf(event.prev_kv) : 0);
    if (size + more > LARGE) {
      pieces.push([]);
      size = 0;
    }
    pieces.at(-1)?.push(event);
    size += more;
  }
  return pieces;
}
