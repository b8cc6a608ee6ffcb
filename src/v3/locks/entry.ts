/**
 * The life of a ticket's entry on etcd v3 as one immutable value. {@link step} returns the state after an event, {@link duty} returns
 * what must still be done. Both are pure.
 *
 * | event                        | place before                                          | place after                             |
 * | ---------------------------- | ----------------------------------------------------- | --------------------------------------- |
 * | written, found               | any                                                   | queued                                  |
 * | givenUp with `until`         | any with an own entry                                 | expiring                                |
 * | givenUp                      | with an own entry; `none` with an unanswered append   | leaving                                 |
 * | leaseExpired, outside a call | queued                                                | leaving                                 |
 * | removing                     | expiring                                              | leaving                                 |
 * | removed, leftToExpire        | any                                                   | none                                    |
 * | forgotten, takenOver         | any                                                   | none                                    |
 * | inherited                    | leaving, here or there                                | leaving                                 |
 * | inherited                    | any other                                             | as before; from none, that of the other |
 *
 * The other events leave the place as it is. In every place, requests that were not answered may still be carried out: the {@link Debts}.
 */
import type { Deadline } from '../../base/time.ts';
import { SEARCH_APPEND_FOR } from '../../recipe/entries/timing.ts';
import type { OwnEntry } from '../../recipe/store.ts';
import type { V3Entry } from '../rpc/entry.ts';
import type { EtcdLease } from './leases/lease.ts';

/** The own entry of a ticket, with its lease. */
export interface V3OwnEntry extends OwnEntry {
  /** The revision of its last write. */
  readonly modified: bigint;
  /** The lease that the entry is attached to; undefined if it has none, or one that this ticket does not know. */
  readonly lease: EtcdLease | undefined;
}

/** Where the entry is. */
type Place =
  /** No entry is known. */
  | { readonly is: 'none' }
  /** The ticket waits or holds. */
  | { readonly is: 'queued'; readonly own: V3OwnEntry }
  /** The entry must get a lease with which it expires at `until`. Once that has passed, it must be removed. */
  | { readonly is: 'expiring'; readonly own: V3OwnEntry; readonly until: Deadline }
  /** The entry must be removed. `own` is undefined if only an unanswered append may have created it. */
  | { readonly is: 'leaving'; readonly own: V3OwnEntry | undefined };

/** Requests that were not answered: etcd may still carry them out. */
interface Debts {
  /** Number of appends that were sent and not answered. */
  readonly unanswered: number;
  /** The leases of such requests; undefined: a request without a lease. */
  readonly leases: ReadonlySet<EtcdLease | undefined>;
  /**
   * Until when to search for the key after its removal: a late append may create it again. Milliseconds on the monotonic clock. The search
   * ends when a removal that began after this time has succeeded.
   */
  readonly searchUntil: number | undefined;
  /** Rank of an entry that was left to expire: the search must not remove it. A later ticket with the same value makes it its own. */
  readonly kept: bigint | undefined;
}

export interface EntryState {
  readonly place: Place;
  readonly debts: Debts;
  /** Whether an answer has shown that the entry has changed or is gone: its key may now belong to another client. */
  readonly isDoubtful: boolean;
  /** Whether an earlier request may still move or remove the entry, which must be written again before it counts as renewed. */
  readonly isContested: boolean;
  /** Whether a call is entering or leaving the queue: it takes care of an expired lease itself. */
  readonly isInCall: boolean;
  /** The last own entry, also after its removal. */
  readonly last: OwnEntry | undefined;
}

export type EntryEvent =
  /** A call that enters or leaves the queue. */
  | { readonly is: 'callBegan' | 'callEnded' }
  /** One request, of which a call may send several. */
  | { readonly is: 'appendSent' | 'appendAnswered' }
  /** A call that has sent appends has ended, with or without an answer to each. */
  | { readonly is: 'appendEnded'; readonly lease: EtcdLease | undefined }
  /** A request that attaches the entry to this lease was not answered. */
  | { readonly is: 'moveLost'; readonly lease: EtcdLease | undefined }
  /** A call that enters the queue was answered: leases that no request can use any more are forgotten. */
  | { readonly is: 'enterAnswered' }
  /** A read has shown an entry with the ticket's value. */
  | { readonly is: 'found'; readonly own: V3Entry; readonly clusterId: string | undefined }
  | { readonly is: 'written' | 'renewed'; readonly own: V3OwnEntry }
  /** The entry is gone, or belongs to nobody any more. Other than a removal, this says nothing about late appends. */
  | { readonly is: 'forgotten' }
  /** An answer has shown that the entry has changed or is gone. */
  | { readonly is: 'doubted' }
  /** A removal in the background was stopped: it may still be carried out. */
  | { readonly is: 'interrupted' }
  /** The ticket leaves the queue: at once, or at `until`, which has not passed. `until` only concerns an own entry. */
  | { readonly is: 'givenUp'; readonly until: Deadline | undefined }
  /** The ticket has not renewed the lease for a TTL; only others keep it alive. */
  | { readonly is: 'leaseExpired' }
  /** A removal begins: if the entry was to expire, its time has passed, and it must now be removed in any case. */
  | { readonly is: 'removing' }
  /** A removal that began at `began` has succeeded; `wasThere`: the entry was still there. Times are milliseconds on the monotonic clock. */
  | { readonly is: 'removed'; readonly began: number; readonly at: number; readonly wasThere: boolean }
  /** The entry expires at its time, without further requests. */
  | { readonly is: 'leftToExpire'; readonly at: number }
  /** An earlier ticket for the same key has left its entry and its debts to this one. */
  | { readonly is: 'inherited'; readonly from: EntryState }
  /** A later ticket has inherited everything. */
  | { readonly is: 'takenOver' };

/** What must still be done. `search` is less urgent: a late append may have created the entry. */
export type Duty =
  | { readonly is: 'expire'; readonly own: V3OwnEntry; readonly until: Deadline }
  | { readonly is: 'remove' | 'search'; readonly own: V3OwnEntry | undefined };

const NONE: Place = { is: 'none' };
const NO_DEBTS: Debts = { unanswered: 0, leases: new Set(), searchUntil: undefined, kept: undefined };

/** The state of a ticket that has made no request. */
export const INITIAL: EntryState = {
  ...{ place: NONE, debts: NO_DEBTS, last: undefined },
  ...{ isDoubtful: false, isContested: false, isInCall: false },
};

/** Returns the state after the event. */
export function step(state: EntryState, event: EntryEvent): EntryState {
  const { place, debts } = state;
  const own = ownIn(state);
  switch (event.is) {
    case 'callBegan':
    case 'callEnded':
      return { ...state, isInCall: event.is === 'callBegan' };
    case 'appendSent':
      return withDebts(state, { unanswered: debts.unanswered + 1 });
    case 'appendAnswered':
      return withDebts(state, { unanswered: Math.max(0, debts.unanswered - 1) });
    case 'appendEnded':
      return debts.unanswered > 0 ? withLease(state, event.lease) : state;
    case 'moveLost':
      return { ...withLease(state, event.lease), isContested: true };
    case 'enterAnswered':
      if (debts.unanswered > 0 || debts.searchUntil !== undefined) return state;
      return withDebts(state, { leases: NO_DEBTS.leases });
    case 'found':
      if (own?.rank === event.own.rank) return { ...state, place: { is: 'queued', own } };
      return queued(state, found(event.own, event.clusterId));
    case 'written':
      return { ...queued(state, event.own), isContested: false };
    case 'renewed':
      return place.is === 'none' ? state : { ...state, place: { ...place, own: event.own }, last: lastOf(event.own) };
    case 'forgotten':
      return { ...state, place: NONE };
    case 'doubted':
      return { ...state, isDoubtful: true };
    case 'interrupted':
      return own ? { ...state, isContested: true } : state;
    case 'givenUp':
      if (own && event.until) return { ...state, place: { is: 'expiring', own, until: event.until } };
      return own || debts.unanswered > 0 ? { ...state, place: { is: 'leaving', own } } : state;
    case 'leaseExpired':
      return place.is === 'queued' && !state.isInCall ? { ...state, place: { is: 'leaving', own } } : state;
    case 'removing':
      return place.is === 'expiring' ? { ...state, place: { is: 'leaving', own } } : state;
    case 'removed':
      return { ...state, place: NONE, debts: debtsAfterRemoval(debts, event), isContested: false };
    case 'leftToExpire':
      return { ...state, place: NONE, debts: debtsAfterExpiry(state, event.at) };
    case 'inherited':
      return { ...inherited(state, event.from), isContested: true };
    case 'takenOver':
      return { ...state, place: NONE, debts: { ...NO_DEBTS, kept: debts.kept } };
  }
}

/** Returns what must still be done at this time, in milliseconds on the monotonic clock. */
export function duty(state: EntryState, at: number): Duty | undefined {
  const { place, debts } = state;
  if (place.is === 'expiring' && at < place.until.at) return { is: 'expire', own: place.own, until: place.until };
  if (isGivenUp(state)) return { is: 'remove', own: ownIn(state) };
  return mayComeBack(debts) ? { is: 'search', own: ownIn(state) } : undefined;
}

export const ownIn = ({ place }: EntryState): V3OwnEntry | undefined => (place.is === 'none' ? undefined : place.own);

/** Whether the ticket has left its entry, but the entry is not removed or left to expire yet. */
export const isGivenUp = ({ place }: EntryState): boolean => place.is === 'expiring' || place.is === 'leaving';

/** Whether the ticket, if it left now, would only have to remove its entry. */
export const isReplaceable = ({ place, debts }: EntryState): boolean =>
  place.is === 'queued' && debts.unanswered === 0 && !mayComeBack(debts);

/** Whether this event, which comes in this state, frees the lease of the own entry: no request of the ticket can attach an entry again. */
export const isFreed = ({ debts }: EntryState, event: EntryEvent): boolean =>
  event.is === 'removed' && event.wasThere && debts.unanswered === 0 && debts.leases.size === 0;

/** Whether no request of the ticket may still be carried out that would create an entry, and none has shown that its key is in doubt. */
export const owesNothing = ({ debts, isDoubtful }: EntryState): boolean =>
  debts.unanswered === 0 && debts.leases.size === 0 && debts.searchUntil === undefined && !isDoubtful;

/** Whether a late append may still create the key: while the search lasts, and the lease of such an append may still exist. */
const mayComeBack = ({ searchUntil, leases }: Debts): boolean =>
  searchUntil !== undefined && [...leases].some((lease) => !lease?.isGoneForGood);

const withDebts = (state: EntryState, debts: Partial<Debts>): EntryState => ({
  ...state,
  debts: { ...state.debts, ...debts },
});

const withLease = (state: EntryState, lease: EtcdLease | undefined): EntryState =>
  withDebts(state, { leases: new Set([...state.debts.leases, lease]) });

const queued = (state: EntryState, own: V3OwnEntry): EntryState => ({
  ...state,
  place: { is: 'queued', own },
  last: lastOf(own),
});

const lastOf = ({ modified: _, lease: __, ...last }: V3OwnEntry): OwnEntry => last;

/** Returns an entry that a read has shown as own entry. Whether it has a lease of this ticket is not known. */
const found = ({ key, value, rank, modified }: V3Entry, clusterId: string | undefined): V3OwnEntry => ({
  ...{ key, value, rank, clusterId, modified },
  ...{ granted: null, sentAt: Number.NEGATIVE_INFINITY, lease: undefined },
});

function debtsAfterRemoval(debts: Debts, { began, at }: { readonly began: number; readonly at: number }): Debts {
  if (debts.unanswered > 0) return { ...debts, unanswered: 0, searchUntil: at + SEARCH_APPEND_FOR * 1000 };
  const isLast = debts.searchUntil !== undefined && began >= debts.searchUntil;
  return isLast ? { ...debts, searchUntil: undefined } : debts;
}

function debtsAfterExpiry({ place, debts }: EntryState, at: number): Debts {
  if (place.is !== 'expiring' || debts.unanswered === 0) return debts;
  const searchUntil = Math.max(at, place.until.at) + SEARCH_APPEND_FOR * 1000;
  return { ...debts, unanswered: 0, searchUntil, kept: place.own.rank };
}

/** Adds what an earlier ticket has left. Its entry only counts if there is no own one. */
function inherited(state: EntryState, from: EntryState): EntryState {
  const { place, debts } = state;
  const own = ownIn(state) ?? ownIn(from);
  const isLeaving = place.is === 'leaving' || from.place.is === 'leaving';
  return {
    ...state,
    place: isLeaving ? { is: 'leaving', own } : ownIn(state) ? place : from.place,
    debts: {
      ...debts,
      unanswered: debts.unanswered + from.debts.unanswered,
      leases: new Set([...debts.leases, ...from.debts.leases]),
      searchUntil: debts.searchUntil ?? from.debts.searchUntil,
    },
  };
}
