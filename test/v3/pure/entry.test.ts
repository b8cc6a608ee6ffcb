import { describe, expect, test } from 'vitest';
import { Deadline } from '../../../src/base/time.ts';
import { SEARCH_APPEND_FOR } from '../../../src/recipe/entries/timing.ts';
import {
  type Duty,
  duty,
  type EntryEvent,
  type EntryState,
  INITIAL,
  isFreed,
  isGivenUp,
  isReplaceable,
  ownIn,
  step,
  type V3OwnEntry,
} from '../../../src/v3/locks/entry.ts';
import { EtcdLease } from '../../../src/v3/locks/leases/lease.ts';
import type { V3Entry } from '../../../src/v3/rpc/entry.ts';
import type { LockRequests } from '../../../src/v3/rpc/requests.ts';

/** Milliseconds. */
const SEARCH = SEARCH_APPEND_FOR * 1000;

const makeLease = () =>
  new EtcdLease(
    {} as LockRequests,
    { grant: () => Promise.reject(), addRevocation: () => {} },
    { id: '7', ttl: 30, isShared: true },
  );
const [lease, other, gone] = [makeLease(), makeLease(), makeLease()];
// It was never created.
gone.end();

const last = { key: '/l/1', value: 'mine', rank: 7n, clusterId: 'c', granted: 30, sentAt: 1 };
const own: V3OwnEntry = { ...last, modified: 8n, lease };
const later: V3OwnEntry = { ...own, rank: 20n, modified: 20n, lease: other };
const read = ({ key, value, rank, modified }: V3OwnEntry): V3Entry => ({
  ...{ key, value, rank, modified },
  ttl: undefined,
  lease: 'any',
});
const until = new Deadline(5000);

const withDebts = (state: EntryState, debts: Partial<EntryState['debts']>): EntryState => ({
  ...state,
  debts: { ...state.debts, ...debts },
});
const none: EntryState = { ...INITIAL, last };
const queued: EntryState = { ...none, place: { is: 'queued', own } };
const leaving: EntryState = { ...none, place: { is: 'leaving', own } };
const leavingUnseen: EntryState = { ...none, place: { is: 'leaving', own: undefined } };
const expiring: EntryState = { ...none, place: { is: 'expiring', own, until } };
const contested = (state: EntryState): EntryState => ({ ...state, isContested: true });
const doubtful = (state: EntryState): EntryState => ({ ...state, isDoubtful: true });
const unanswered = (state: EntryState, count = 1): EntryState => withDebts(state, { unanswered: count });
const using = (state: EntryState, ...leases: (EtcdLease | undefined)[]): EntryState =>
  withDebts(state, { leases: new Set(leases) });
const inCall = (state: EntryState): EntryState => ({ ...state, isInCall: true });
const searching = (state: EntryState, searchUntil: number): EntryState => withDebts(state, { searchUntil });
const givenUp: EntryEvent = { is: 'givenUp', until: undefined };
const given: EntryEvent = { is: 'givenUp', until };

type Case = readonly [sentence: string, before: EntryState, event: EntryEvent, after: EntryState];

const transitions: Readonly<Record<string, readonly Case[]>> = {
  'an append': [
    ['that is sent is owed', none, { is: 'appendSent' }, unanswered(none)],
    ['that is answered is not owed any more', unanswered(none, 2), { is: 'appendAnswered' }, unanswered(none)],
    ['is not answered more often than sent', none, { is: 'appendAnswered' }, none],
    [
      'without an answer may still use its lease',
      unanswered(none),
      { is: 'appendEnded', lease },
      unanswered(using(none, lease)),
    ],
    [
      'without a lease may still be carried out, too',
      unanswered(using(none, lease)),
      { is: 'appendEnded', lease: undefined },
      unanswered(using(none, lease, undefined)),
    ],
    ['with an answer does not use its lease any more', none, { is: 'appendEnded', lease }, none],
  ],
  'a move without an answer': [
    [
      'may still attach the entry to its lease, and contests the entry',
      queued,
      { is: 'moveLost', lease: other },
      contested(using(queued, other)),
    ],
  ],
  'a call that enters and is answered': [
    ['frees the leases of earlier requests', using(queued, lease, other), { is: 'enterAnswered' }, queued],
    [
      'does not while an append is unanswered',
      unanswered(using(queued, other)),
      { is: 'enterAnswered' },
      unanswered(using(queued, other)),
    ],
    [
      'does not while a late append is searched for',
      searching(using(queued, other), 9),
      { is: 'enterAnswered' },
      searching(using(queued, other), 9),
    ],
  ],
  'an entry that is found': [
    [
      'is taken over, without a known lease or TTL',
      INITIAL,
      { is: 'found', own: read(own), clusterId: 'c' },
      {
        ...INITIAL,
        place: { is: 'queued', own: { ...own, granted: null, sentAt: Number.NEGATIVE_INFINITY, lease: undefined } },
        last: { ...last, granted: null, sentAt: Number.NEGATIVE_INFINITY },
      },
    ],
    ['stays as it is known', queued, { is: 'found', own: { ...read(own), modified: 9n }, clusterId: 'd' }, queued],
    ['is in the queue again if it was to be removed', leaving, { is: 'found', own: read(own), clusterId: 'c' }, queued],
    ['is in the queue again if it was to expire', expiring, { is: 'found', own: read(own), clusterId: 'c' }, queued],
    [
      'replaces an entry of another rank',
      leaving,
      { is: 'found', own: read(later), clusterId: 'c' },
      {
        ...none,
        place: { is: 'queued', own: { ...later, granted: null, sentAt: Number.NEGATIVE_INFINITY, lease: undefined } },
        last: { ...last, rank: 20n, granted: null, sentAt: Number.NEGATIVE_INFINITY },
      },
    ],
  ],
  'an entry that is written': [
    ['is in the queue', INITIAL, { is: 'written', own }, queued],
    ['is not contested any more', contested(queued), { is: 'written', own }, queued],
    [
      'is the last one known',
      queued,
      { is: 'written', own: later },
      { ...queued, place: { is: 'queued', own: later }, last: { ...last, rank: 20n } },
    ],
  ],
  'an entry that is renewed': [
    [
      'counts from then',
      queued,
      { is: 'renewed', own: { ...own, sentAt: 9 } },
      { ...queued, place: { is: 'queued', own: { ...own, sentAt: 9 } }, last: { ...last, sentAt: 9 } },
    ],
    ['stays contested', contested(queued), { is: 'renewed', own }, contested(queued)],
    ['is still to be removed', leaving, { is: 'renewed', own }, leaving],
    ['does not come back once it is gone', none, { is: 'renewed', own: later }, none],
  ],
  'an entry that is forgotten': [
    ['is in no queue, but known as the last one', queued, { is: 'forgotten' }, none],
    ['leaves the debts', unanswered(using(queued, other)), { is: 'forgotten' }, unanswered(using(none, other))],
  ],
  'a doubt': [
    ['stays', queued, { is: 'doubted' }, doubtful(queued)],
    ['stays after a write', doubtful(queued), { is: 'written', own }, doubtful(queued)],
  ],
  'a removal that is interrupted': [
    ['contests the entry', leaving, { is: 'interrupted' }, contested(leaving)],
    ['contests nothing without an entry', leavingUnseen, { is: 'interrupted' }, leavingUnseen],
  ],
  'a call that enters or leaves the queue': [
    ['is noted when it begins', queued, { is: 'callBegan' }, inCall(queued)],
    ['is forgotten when it ends', inCall(leaving), { is: 'callEnded' }, leaving],
  ],
  'a ticket that leaves': [
    ['must remove its entry', queued, givenUp, leaving],
    ['must remove what an unanswered append may have created', unanswered(none), givenUp, unanswered(leavingUnseen)],
    ['has nothing to do without an entry', none, givenUp, none],
    ['until a deadline lets its entry expire', queued, given, expiring],
    ['until a deadline lets its entry expire, also after a removal that failed', leaving, given, expiring],
    [
      'until a deadline removes what an unanswered append may have created',
      unanswered(none),
      given,
      unanswered(leavingUnseen),
    ],
    ['must remove its entry, also if that was to expire', expiring, givenUp, leaving],
    ['must still remove an entry that nobody has seen', leavingUnseen, givenUp, leavingUnseen],
  ],
  'a lease that only others keep alive': [
    ['makes the entry one to remove', queued, { is: 'leaseExpired' }, leaving],
    ['lets an entry expire that is to expire', expiring, { is: 'leaseExpired' }, expiring],
    ['changes nothing without an entry', none, { is: 'leaseExpired' }, none],
    ['is left to a call that enters or leaves the queue', inCall(queued), { is: 'leaseExpired' }, inCall(queued)],
  ],
  'a removal that begins': [
    ['makes an entry that was to expire one to remove', expiring, { is: 'removing' }, leaving],
    ['changes nothing for an entry that is to be removed', leavingUnseen, { is: 'removing' }, leavingUnseen],
    ['changes nothing for an entry in the queue: it is a search', queued, { is: 'removing' }, queued],
  ],
  'a removal that succeeds': [
    ['ends the entry', contested(leaving), { is: 'removed', wasThere: true, began: 1, at: 2 }, none],
    [
      'begins the search for an unanswered append',
      unanswered(using(leaving, lease)),
      { is: 'removed', wasThere: true, began: 1, at: 2 },
      searching(using(none, lease), 2 + SEARCH),
    ],
    [
      'begins the search anew if a further append is unanswered',
      unanswered(searching(leaving, 1)),
      { is: 'removed', wasThere: true, began: 1, at: 2 },
      searching(none, 2 + SEARCH),
    ],
    [
      'continues the search if it began before its end',
      searching(none, 9),
      { is: 'removed', wasThere: true, began: 8, at: 10 },
      searching(none, 9),
    ],
    [
      'ends the search if it began after its end',
      searching(none, 9),
      { is: 'removed', wasThere: true, began: 9, at: 10 },
      none,
    ],
  ],
  'an entry that is left to expire': [
    ['is gone for the ticket', expiring, { is: 'leftToExpire', at: 1 }, none],
    [
      'stays, while an unanswered append is searched for until after its time',
      unanswered(expiring),
      { is: 'leftToExpire', at: 1 },
      withDebts(none, { searchUntil: until.at + SEARCH, kept: own.rank }),
    ],
    [
      'is searched for from now on, if its time has passed',
      unanswered(expiring),
      { is: 'leftToExpire', at: 6000 },
      withDebts(none, { searchUntil: 6000 + SEARCH, kept: own.rank }),
    ],
  ],
  'a ticket that inherits': [
    ['takes over the entry to remove', none, { is: 'inherited', from: leaving }, contested(leaving)],
    ['takes over the entry to expire', none, { is: 'inherited', from: expiring }, contested(expiring)],
    [
      'must remove its own entry if the earlier ticket had to',
      { ...queued, place: { is: 'queued', own: later } },
      { is: 'inherited', from: leaving },
      contested({ ...leaving, place: { is: 'leaving', own: later } }),
    ],
    [
      'keeps its own entry if the earlier one was to expire',
      queued,
      { is: 'inherited', from: { ...expiring, place: { is: 'expiring', own: later, until } } },
      contested(queued),
    ],
    [
      'must still remove what nobody has seen, and the entry of the earlier ticket with it',
      leavingUnseen,
      { is: 'inherited', from: queued },
      contested(leaving),
    ],
    [
      'adds the debts',
      unanswered(using(none, lease)),
      { is: 'inherited', from: unanswered(using(none, other), 2) },
      contested(unanswered(using(none, lease, other), 3)),
    ],
    ['takes over the search', none, { is: 'inherited', from: searching(none, 9) }, contested(searching(none, 9))],
    [
      'continues its own search',
      searching(none, 5),
      { is: 'inherited', from: searching(none, 9) },
      contested(searching(none, 5)),
    ],
    [
      'has its own doubts, last entry and entry to keep',
      withDebts(none, { kept: 1n }),
      { is: 'inherited', from: withDebts(doubtful({ ...none, last: undefined }), { kept: 2n }) },
      contested(withDebts(none, { kept: 1n })),
    ],
  ],
  'a ticket that is inherited from': [
    [
      'owes nothing any more',
      contested(withDebts(doubtful(leaving), { unanswered: 1, leases: new Set([lease]), searchUntil: 9, kept: 1n })),
      { is: 'takenOver' },
      contested(withDebts(doubtful(none), { kept: 1n })),
    ],
  ],
};

describe.each(Object.entries(transitions))('%s', (_, cases) => {
  test.each(cases)('%s', (_sentence, before, event, after) => {
    expect(step(before, event)).toEqual(after);
  });
});

describe('the duty', () => {
  const search = (of: EntryState, ...leases: (EtcdLease | undefined)[]) => searching(using(of, ...leases), 9);

  test.each<[sentence: string, state: EntryState, at: number, due: Duty | undefined]>([
    ['of a ticket without an entry is nothing', none, 0, undefined],
    ['of a ticket that waits or holds is nothing', unanswered(using(queued, lease)), 0, undefined],
    ['of a ticket that leaves is to remove its entry', leaving, 0, { is: 'remove', own }],
    ['of a ticket that leaves is to remove what nobody has seen', leavingUnseen, 0, { is: 'remove', own: undefined }],
    ['before the deadline is to let the entry expire', expiring, until.at - 1, { is: 'expire', own, until }],
    ['at the deadline is to remove the entry', expiring, until.at, { is: 'remove', own }],
    ['after the removal is to search for a late append', search(none, lease), 0, { is: 'search', own: undefined }],
    ['is to search for an append without a lease', search(none, gone, undefined), 0, { is: 'search', own: undefined }],
    ['is no search once all leases of such appends are gone', search(none, gone), 0, undefined],
    ['is no search without a late append', search(none), 0, undefined],
    ['is to search with the entry of a ticket that has not left', search(queued, lease), 0, { is: 'search', own }],
    ['is to remove rather than to search', search(leaving, lease), 0, { is: 'remove', own }],
  ])('%s', (_, state, at, due) => {
    expect(duty(state, at)).toEqual(due);
  });
});

test.each<[sentence: string, state: EntryState, is: boolean]>([
  ['can be replaced while it waits or holds', queued, true],
  ['cannot without an entry', none, false],
  ['cannot once it has left', leaving, false],
  ['cannot while an append is unanswered', unanswered(queued), false],
  ['cannot while a late append may come', searching(using(queued, lease), 9), false],
  ['can once such an append cannot come any more', searching(using(queued, gone), 9), true],
])('an entry %s', (_, state, is) => {
  expect(isReplaceable(state)).toBe(is);
});

test('a ticket has given up an entry that is to be removed or to expire', () => {
  expect([none, queued, leaving, leavingUnseen, expiring].map(isGivenUp)).toEqual([false, false, true, true, true]);
  expect([none, queued, leaving, leavingUnseen, expiring].map(ownIn)).toEqual([undefined, own, own, undefined, own]);
});

describe('the lease of an entry', () => {
  const removed: EntryEvent = { is: 'removed', wasThere: true, began: 1, at: 2 };

  test('is free once the entry is removed', () => {
    expect(isFreed(leaving, removed)).toBe(true);
  });

  test.each<[string, EntryState, EntryEvent]>([
    [
      'the entry was gone before its removal: something else may have created it again',
      leaving,
      { ...removed, wasThere: false },
    ],
    ['an append is unanswered', unanswered(leaving), removed],
    ['a late request may still use it', using(leaving, lease), removed],
    ['a late request may still use another lease', using(leaving, other), removed],
    ['the entry is left to expire', expiring, { is: 'leftToExpire', at: 1 }],
    ['the entry is forgotten', queued, { is: 'forgotten' }],
  ])('is not free if %s', (_, state, event) => {
    expect(isFreed(state, event)).toBe(false);
  });
});
