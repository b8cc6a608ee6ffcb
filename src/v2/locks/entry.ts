/**
 * The life of a ticket's entries on etcd v2 as one immutable value. {@link step} returns the state after an event, {@link duty} returns
 * what must still be done. Both are pure.
 *
 * ```text
 *            appended, found          givenUp, until
 *     (none) ───────────────► queued ─────────────────► expiring
 *        ▲ ◄───────────────── │ │ ▲ ◄────────────────── │  │
 *        │      forgotten     │ │ │ found, leftToExpire    │
 *        │                    │ │ │                        │
 *        │            givenUp │ │ │ found                  │ givenUp, removing
 *        │                    │ ▼ │                        │
 *        ╰──────────────────── given up ◄──────────────────╯
 *               removed
 * ```
 *
 * Each append makes a new key, so a ticket may have several entries: at most one is queued or expiring, the others are given up. Those of
 * which nobody knows whether they exist are {@link UnclearAppends}. On etcd v3, the value determines the key: hence another machine.
 */
import type { Deadline } from '../../base/time.ts';
import type { OwnEntry } from '../../recipe/store.ts';
import type { V2Entry } from './reading.ts';
import { answered, joined, lost, NO_APPENDS, searched, seen, sent, type UnclearAppends } from './unclear.ts';

/** The own entry of a ticket. */
export interface V2OwnEntry extends OwnEntry {
  /** Index of the last known write. */
  readonly modifiedIndex: number;
  /** Changes when the key is re-created, or written without a condition. */
  readonly createdIndex: number;
  /** Whether the key was written since, so that it must be read before the next write. */
  readonly isOutdated?: boolean;
}

/** Where the own entry is. */
type V2Place =
  /** No own entry is known. */
  | { readonly is: 'none' }
  /**
   * The ticket waits or holds, or has left the entry to expire and need not do more. `isFirst`: no earlier append of this ticket can have
   * created an entry before this one. Without that, search before the entry is used: the earlier one keeps its position.
   */
  | { readonly is: 'queued'; readonly own: V2OwnEntry; readonly isFirst: boolean }
  /** The entry must get a TTL with which it expires at `until`. Once that has passed, it must be removed. */
  | { readonly is: 'expiring'; readonly own: V2OwnEntry; readonly until: Deadline };

export interface V2EntryState {
  readonly place: V2Place;
  /** Entries given up that may still be in the queue. */
  readonly givenUp: readonly V2OwnEntry[];
  readonly unclear: UnclearAppends;
  /** The last own entry, also after its removal. */
  readonly last: V2OwnEntry | undefined;
}

export type V2EntryEvent =
  | { readonly is: 'appendSent' | 'appendRefused' | 'appendLost' }
  /** An append was answered: it has created this entry. */
  | { readonly is: 'appended'; readonly own: V2OwnEntry }
  /** A read by quorum has shown the first entry with the ticket's value. */
  | { readonly is: 'found'; readonly first: V2Entry; readonly clusterId: string | undefined }
  /** After a read by quorum, with that index and at that time, no entry with the ticket's value is left, except the own one. */
  | { readonly is: 'searched'; readonly index: number; readonly at: number }
  /** Another entry with the ticket's value was removed. */
  | { readonly is: 'extraRemoved'; readonly extra: V2Entry }
  /** A write or a read has shown more about the own entry. */
  | { readonly is: 'updated'; readonly own: V2OwnEntry }
  /** The own entry is gone. */
  | { readonly is: 'forgotten' }
  /** The ticket leaves the queue: at once, or at `until`, which has not passed. */
  | { readonly is: 'givenUp'; readonly until: Deadline | undefined }
  /** A removal begins: if the own entry was to expire, its time has passed. */
  | { readonly is: 'removing' }
  /** An entry given up is gone. */
  | { readonly is: 'removed'; readonly entry: V2OwnEntry }
  /** The own entry expires at its time, without further requests. */
  | { readonly is: 'leftToExpire' }
  /** An earlier ticket with the same value has left its duties to this one. */
  | { readonly is: 'inherited'; readonly from: V2EntryState }
  /** A later ticket has inherited all duties. */
  | { readonly is: 'takenOver' };

/** What must still be done. `search`: an append with an unknown outcome may have created a key. Urgent until one search has succeeded. */
export type V2Duty =
  | { readonly is: 'expire'; readonly until: Deadline }
  | { readonly is: 'remove'; readonly entry: V2OwnEntry }
  | { readonly is: 'search'; readonly isUrgent: boolean };

const NONE: V2Place = { is: 'none' };

/** The state of a ticket that has made no request. */
export const INITIAL: V2EntryState = { place: NONE, givenUp: [], unclear: NO_APPENDS, last: undefined };

/** Returns the state after the event. */
export function step(state: V2EntryState, event: V2EntryEvent): V2EntryState {
  const { place, givenUp, unclear } = state;
  const own = ownIn(state);
  switch (event.is) {
    case 'appendSent':
      return { ...state, unclear: sent(unclear, state.last) };
    case 'appendRefused':
      return { ...state, unclear: answered(unclear) };
    case 'appendLost':
      return { ...state, unclear: lost(unclear) };
    case 'appended': {
      const left = answered(unclear, event.own);
      const queued: V2Place = { is: 'queued', own: event.own, isFirst: left.count === 0 };
      return { ...state, place: queued, unclear: left, last: event.own };
    }
    case 'found':
      return found(state, event.first, event.clusterId);
    case 'searched':
      return {
        ...state,
        place: place.is === 'queued' ? { ...place, isFirst: true } : place,
        unclear: searched(unclear, event.index, event.at),
      };
    case 'extraRemoved':
      return event.extra.key === own?.key ? state : { ...state, unclear: seen(unclear, event.extra) };
    case 'updated':
      if (place.is === 'none' || !isUpdate(place.own, event.own)) return state;
      return { ...state, place: { ...place, own: event.own }, last: event.own };
    case 'forgotten':
      return { ...state, place: NONE };
    case 'givenUp':
      if (own && event.until) return { ...state, place: { is: 'expiring', own, until: event.until } };
      return withoutOwn(state);
    case 'removing':
      return place.is === 'expiring' ? withoutOwn(state) : state;
    case 'removed':
      return { ...state, givenUp: givenUp.filter(({ key }) => key !== event.entry.key) };
    case 'leftToExpire':
      return place.is === 'expiring' ? { ...state, place: { is: 'queued', own: place.own, isFirst: true } } : state;
    case 'inherited': {
      const inherited = {
        ...state,
        givenUp: [...givenUp, ...event.from.givenUp],
        unclear: joined(unclear, event.from.unclear),
      };
      const expiring = !own && event.from.place.is === 'expiring' ? event.from.place : undefined;
      return expiring ? { ...inherited, place: expiring, last: expiring.own } : inherited;
    }
    case 'takenOver':
      return { ...state, place: place.is === 'expiring' ? NONE : place, givenUp: [], unclear: NO_APPENDS };
  }
}

/** Returns what must still be done at this time, in milliseconds on the monotonic clock. */
export function duty({ place, givenUp: [entry], unclear }: V2EntryState, at: number): V2Duty | undefined {
  if (place.is === 'expiring')
    return at < place.until.at ? { is: 'expire', until: place.until } : { is: 'remove', entry: place.own };
  if (entry) return { is: 'remove', entry };
  return unclear.count > 0 ? { is: 'search', isUrgent: unclear.readAt === undefined } : undefined;
}

export const ownIn = ({ place }: V2EntryState): V2OwnEntry | undefined => (place.is === 'none' ? undefined : place.own);

/** Returns the entries that the ticket has left, but that are not removed or left to expire yet. */
export const leavingIn = ({ place, givenUp }: V2EntryState): readonly V2OwnEntry[] =>
  place.is === 'expiring' ? [...givenUp, place.own] : givenUp;

/**
 * Whether an entry with the ticket's value may be in the queue that is not known.
 * @param mayExist whether the queue may have an entry that this ticket did not append
 */
export const mustSearch = ({ place, unclear }: V2EntryState, mayExist: boolean): boolean =>
  place.is === 'none' ? mayExist || unclear.count > 0 : place.is === 'queued' && !place.isFirst;

function withoutOwn(state: V2EntryState): V2EntryState {
  const own = ownIn(state);
  return own ? { ...state, place: NONE, givenUp: [...state.givenUp, own] } : state;
}

/** Keeps the entry found, even if it was given up before. A removal request under way fails once a renewal changes the index. */
function found(state: V2EntryState, first: V2Entry, clusterId: string | undefined): V2EntryState {
  const known = ownIn(state);
  const isKnown = known?.key === first.key;
  const own = isKnown ? known : adopted(first, clusterId);
  return {
    place: { is: 'queued', own, isFirst: true },
    givenUp: state.givenUp.filter(({ key }) => key !== first.key),
    unclear: isKnown ? state.unclear : seen(state.unclear, first),
    last: own,
  };
}

/** Returns an entry found in the queue as own entry. It must be renewed before the lock can be held with it. */
const adopted = ({ ttl, ...entry }: V2Entry, clusterId: string | undefined): V2OwnEntry => ({
  ...entry,
  clusterId,
  granted: ttl ?? null,
  sentAt: Number.NEGATIVE_INFINITY,
});

/** Two calls may write an entry at the same time: the later write counts. */
const isUpdate = (own: V2OwnEntry, { key, modifiedIndex }: V2OwnEntry): boolean =>
  key === own.key && modifiedIndex >= own.modifiedIndex;
