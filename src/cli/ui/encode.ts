import { publishedIn } from '../../recipe/entries/entry-value.ts';
import type { ParsedEntry } from '../../recipe/survey.ts';
import { type LiveEntry, type LiveLock, type LiveModel, liveIn, longestWaiter, waitsFor } from '../live/model.ts';
import type { ShownClient, ShownEntry, ShownEvent, ShownLock, ShownQueue, ShownStore, ShownTtl } from './shapes.ts';

/** A store with what is known of its queues. */
export interface LiveStore {
  readonly api: 'v2' | 'v3';
  readonly model: LiveModel;
}

/** Number of characters of a text that a client has written, and of a key or a name. */
export const LONGEST_TEXT = 200;
export const LONGEST_KEY = 1000;
/** Number of entries of a queue, and of events, that are sent. */
const MOST_ENTRIES = 500;
const MOST_EVENTS = 200;

/** Cuts a text, but not between the two halves of a character. */
export function cut(text: string, longest: number): string {
  if (text.length <= longest) return text;
  return `${text.slice(0, longest).replace(/[\ud800-\udbff]$/, '')}…`;
}

const textOrNull = (text: string | undefined): string | null => (text === undefined ? null : cut(text, LONGEST_TEXT));

/** The uuid and the key of an entry, as they are sent. */
export const uuidOf = ({ uuid }: ParsedEntry): string => cut(uuid, LONGEST_TEXT);
export const keyOf = ({ key }: ParsedEntry): string => cut(key, LONGEST_KEY);

const namesIn = ({ entry }: Pick<LiveEntry, 'entry'>): ShownEvent['client'] => ({
  identity: textOrNull(entry.identity),
  label: textOrNull(entry.label),
  uuid: uuidOf(entry),
  key: keyOf(entry),
});

const clientOf = (live: LiveEntry): ShownClient => ({
  kind: live.kind,
  ...namesIn(live),
  seenAt: live.seenAt,
  queuedAt: live.queuedAt ?? null,
  heldAt: live.heldAt ?? null,
});

export const storeOf = ({ api, model: { seenAt, outage, omitted } }: LiveStore): ShownStore => ({
  api,
  seenAt: seenAt ?? 0,
  outage: outage ? { since: outage.since, message: cut(outage.message, LONGEST_KEY) } : null,
  omitted,
});

export const ttlOf = ({ ttl, renewedAt }: LiveEntry): ShownTtl | null =>
  ttl ? { left: ttl.left ?? null, at: ttl.at, renewedAt: renewedAt ?? null } : null;

/** Only a value with a label, which follows "@", may have a published text. */
const publishes = ({ entry: { value } }: LiveEntry): boolean => value.includes('@') && publishedIn(value) !== undefined;

export function lockOf(lock: LiveLock, holder: LiveEntry, api: 'v2' | 'v3', id: number): ShownLock {
  const waiter = longestWaiter(lock);
  const name = cut(lock.name, LONGEST_KEY);
  return {
    id,
    api,
    name,
    isCut: name !== lock.name,
    holder: clientOf(holder),
    holders: lock.holders.length,
    waiters: lock.waiters.length,
    waitingSince: waiter ? (waiter.queuedAt ?? waiter.seenAt) : null,
    isWaitKnown: waiter?.queuedAt !== undefined,
    value: textOrNull(publishedIn(holder.entry.value)),
    candidates: liveIn(lock).filter(publishes).length,
  };
}

function entryOf(lock: LiveLock, live: LiveEntry): ShownEntry {
  const { mode, limit = null, value } = live.entry;
  const obstacle = waitsFor(lock, live);
  return {
    state: lock.holders.includes(live) ? 'holds' : 'waits',
    ...clientOf(live),
    mode,
    limit,
    ttl: ttlOf(live),
    waitsFor: obstacle ? { key: keyOf(obstacle.nearest), count: obstacle.count } : null,
    value: textOrNull(publishedIn(value)),
  };
}

/** What all queues have in common. */
export type QueueBasis = Pick<ShownQueue, 'startedAt' | 'mayRelease'>;

/** Returns the queue of a lock in each store where it has entries, and what has happened to it since the start. */
export function queueOf(stores: readonly LiveStore[], name: string, basis: QueueBasis): ShownQueue {
  const found = stores.flatMap(({ api, model }) => {
    const lock = model.locks.find((each) => each.name === name);
    return lock ? [{ api, lock }] : [];
  });
  const history = stores.flatMap(({ api, model }) =>
    model.history
      .filter(({ entry }) => entry.name === name)
      .map(({ at, kind, entry }) => ({ at, api, kind, client: namesIn({ entry }) })),
  );
  const last = history.sort((one, other) => one.at - other.at).slice(-MOST_EVENTS);
  return {
    now: Date.now(),
    ...basis,
    recordedSince: Math.max(
      basis.startedAt,
      ...stores.map(oldestKept),
      last.length < history.length ? (last[0]?.at ?? 0) : 0,
    ),
    stores: stores.map(storeOf),
    name: cut(name, LONGEST_KEY),
    queues: found.map(({ api, lock }) => ({
      api,
      holders: lock.holders.length,
      waiters: lock.waiters.length,
      entries: liveIn(lock)
        .slice(0, MOST_ENTRIES)
        .map((live) => entryOf(lock, live)),
    })),
    history: last,
  };
}

/** Returns when the oldest event of a store happened, if older ones are not kept; otherwise 0. */
const oldestKept = ({ model: { history, recorded } }: LiveStore): number =>
  recorded > history.length ? (history[0]?.at ?? 0) : 0;
