import { describe, expect, test } from 'vitest';
import { Deadline } from '../../../../src/base/time.ts';
import {
  duty,
  INITIAL,
  leavingIn,
  mustSearch,
  ownIn,
  step,
  type V2Duty,
  type V2EntryEvent,
  type V2EntryState,
  type V2OwnEntry,
} from '../../../../src/v2/locks/entry.ts';
import type { V2Entry } from '../../../../src/v2/locks/reading.ts';
import {
  answered,
  joined,
  lost,
  NO_APPENDS,
  searched,
  seen,
  sent,
  type UnclearAppends,
} from '../../../../src/v2/locks/unclear.ts';

const entry = (n: number): V2OwnEntry => ({
  ...{ key: `/l/${n}`, value: 'mine', rank: BigInt(n), modifiedIndex: n, createdIndex: n },
  ...{ clusterId: 'c', granted: 30, sentAt: 1 },
});
const read = ({ key, value, rank, modifiedIndex, createdIndex }: V2OwnEntry): V2Entry => ({
  ...{ key, value, rank, modifiedIndex, createdIndex, ttl: 7 },
});
const adopted = (own: V2OwnEntry): V2OwnEntry => ({ ...own, granted: 7, sentAt: Number.NEGATIVE_INFINITY });
const [earlier, own, later] = [entry(3), entry(5), entry(9)];
const until = new Deadline(5000);

const none: V2EntryState = { ...INITIAL, last: own };
const queued: V2EntryState = { ...none, place: { is: 'queued', own, isFirst: true } };
const second: V2EntryState = { ...none, place: { is: 'queued', own, isFirst: false } };
const expiring: V2EntryState = { ...none, place: { is: 'expiring', own, until } };
const leaving = (state: V2EntryState, ...givenUp: V2OwnEntry[]): V2EntryState => ({ ...state, givenUp });
const owing = (state: V2EntryState, unclear: UnclearAppends): V2EntryState => ({ ...state, unclear });

const one = sent(NO_APPENDS, own);
const two = sent(one, own);
const given: V2EntryEvent = { is: 'givenUp', until: undefined };

type Case = readonly [sentence: string, before: V2EntryState, event: V2EntryEvent, after: V2EntryState];

const transitions: Readonly<Record<string, readonly Case[]>> = {
  'an append': [
    ['that is sent is unclear, and comes after the last entry', none, { is: 'appendSent' }, owing(none, one)],
    ['that is refused is clear', owing(none, two), { is: 'appendRefused' }, owing(none, answered(two))],
    [
      'without an answer is searched for from the beginning',
      owing(none, searched(one, 1, 1)),
      { is: 'appendLost' },
      owing(none, lost(searched(one, 1, 1))),
    ],
    [
      'with an answer has created the own entry',
      owing({ ...none, last: undefined }, sent(NO_APPENDS, undefined)),
      { is: 'appended', own },
      owing(queued, answered(sent(NO_APPENDS, undefined), own)),
    ],
    [
      'with an answer may have created an entry behind that of an earlier one',
      owing(none, two),
      { is: 'appended', own: later },
      owing({ ...none, place: { is: 'queued', own: later, isFirst: false }, last: later }, answered(two, later)),
    ],
  ],
  'an entry that is found': [
    [
      'is taken over, to be renewed',
      INITIAL,
      { is: 'found', first: read(own), clusterId: 'c' },
      owing(
        { ...INITIAL, place: { is: 'queued', own: adopted(own), isFirst: true }, last: adopted(own) },
        seen(NO_APPENDS, own),
      ),
    ],
    ['stays as it is known', second, { is: 'found', first: read(own), clusterId: 'd' }, queued],
    ['is in the queue again if it was to expire', expiring, { is: 'found', first: read(own), clusterId: 'c' }, queued],
    [
      'is in the queue again if it was given up',
      leaving(none, own, later),
      { is: 'found', first: read(own), clusterId: 'c' },
      owing(
        leaving({ ...none, place: { is: 'queued', own: adopted(own), isFirst: true }, last: adopted(own) }, later),
        seen(NO_APPENDS, own),
      ),
    ],
    [
      'before the own one replaces it, and makes an append clear',
      owing({ ...second, last: own }, sent(NO_APPENDS, undefined)),
      { is: 'found', first: read(earlier), clusterId: 'c' },
      owing(
        { ...none, place: { is: 'queued', own: adopted(earlier), isFirst: true }, last: adopted(earlier) },
        seen(sent(NO_APPENDS, undefined), earlier),
      ),
    ],
  ],
  'a search that has ended': [
    [
      'counts from its read, and shows that no entry is before the own one',
      owing(second, one),
      { is: 'searched', index: 8, at: 1000 },
      owing(queued, searched(one, 8, 1000)),
    ],
    [
      'changes nothing else',
      owing(expiring, one),
      { is: 'searched', index: 8, at: 1000 },
      owing(expiring, searched(one, 8, 1000)),
    ],
  ],
  'an extra entry that is removed': [
    [
      'makes an append clear',
      owing(queued, two),
      { is: 'extraRemoved', extra: read(later) },
      owing(queued, seen(two, later)),
    ],
    [
      'is no other append if it is the own one',
      owing(queued, joined(NO_APPENDS, sent(NO_APPENDS, earlier))),
      { is: 'extraRemoved', extra: read(own) },
      owing(queued, joined(NO_APPENDS, sent(NO_APPENDS, earlier))),
    ],
  ],
  'an entry that is updated': [
    [
      'is the last one known',
      second,
      { is: 'updated', own: { ...own, modifiedIndex: 6 } },
      {
        ...second,
        place: { is: 'queued', own: { ...own, modifiedIndex: 6 }, isFirst: false },
        last: { ...own, modifiedIndex: 6 },
      },
    ],
    [
      'is still to expire',
      expiring,
      { is: 'updated', own: { ...own, isOutdated: true } },
      {
        ...expiring,
        place: { is: 'expiring', own: { ...own, isOutdated: true }, until },
        last: { ...own, isOutdated: true },
      },
    ],
    ['does not go back to an earlier write', queued, { is: 'updated', own: { ...own, modifiedIndex: 4 } }, queued],
    ['does not replace another entry', queued, { is: 'updated', own: later }, queued],
    ['does not come back once it is gone', none, { is: 'updated', own }, none],
  ],
  'an entry that is gone': [
    ['is forgotten', queued, { is: 'forgotten' }, none],
    [
      'leaves what must be done for others',
      owing(leaving(queued, later), one),
      { is: 'forgotten' },
      owing(leaving(none, later), one),
    ],
  ],
  'a ticket that leaves': [
    ['must remove its entry', leaving(queued, earlier), given, leaving(none, earlier, own)],
    ['must remove its entry, also if that was to expire', expiring, given, leaving(none, own)],
    ['has nothing to remove without an entry', owing(none, one), given, owing(none, one)],
    ['until a deadline lets its entry expire', queued, { is: 'givenUp', until }, expiring],
    [
      'until another deadline lets its entry expire then',
      { ...none, place: { is: 'expiring', own, until: Deadline.never } },
      { is: 'givenUp', until },
      expiring,
    ],
    ['until a deadline has nothing to do without an entry', none, { is: 'givenUp', until }, none],
  ],
  'a removal that begins': [
    ['makes an entry that was to expire one to remove', expiring, { is: 'removing' }, leaving(none, own)],
    ['changes nothing for the others', leaving(queued, later), { is: 'removing' }, leaving(queued, later)],
  ],
  'a removal that succeeds': [
    ['ends that entry', leaving(queued, earlier, later), { is: 'removed', entry: earlier }, leaving(queued, later)],
  ],
  'an entry that is left to expire': [
    ['stays the own one, so that no search removes it', expiring, { is: 'leftToExpire' }, queued],
    ['is none if it was found to be gone', none, { is: 'leftToExpire' }, none],
  ],
  'a ticket that inherits': [
    [
      'takes over the entries to remove, and the search',
      owing(leaving(queued, earlier), one),
      { is: 'inherited', from: owing(leaving(none, later), two) },
      owing(leaving(queued, earlier, later), joined(one, two)),
    ],
    ['takes over the entry to expire', INITIAL, { is: 'inherited', from: expiring }, expiring],
    [
      'keeps its own entry',
      queued,
      { is: 'inherited', from: { ...expiring, place: { is: 'expiring', own: later, until } } },
      queued,
    ],
    ['leaves an entry that waits or holds to the earlier ticket', INITIAL, { is: 'inherited', from: queued }, INITIAL],
  ],
  'a ticket that is inherited from': [
    ['owes nothing any more', owing(leaving(expiring, later), one), { is: 'takenOver' }, none],
    ['keeps an entry that waits or holds', owing(leaving(queued, later), one), { is: 'takenOver' }, queued],
  ],
};

describe.each(Object.entries(transitions))('%s', (_, cases) => {
  test.each(cases)('%s', (_sentence, before, event, after) => {
    expect(step(before, event)).toEqual(after);
  });
});

test.each<[sentence: string, state: V2EntryState, at: number, due: V2Duty | undefined]>([
  ['of a ticket without an entry is nothing', none, 0, undefined],
  ['of a ticket that waits or holds is nothing', queued, 0, undefined],
  ['before the deadline is to let the entry expire', expiring, until.at - 1, { is: 'expire', until }],
  ['at the deadline is to remove the entry', expiring, until.at, { is: 'remove', entry: own }],
  ['is to remove what was given up', leaving(queued, earlier, later), 0, { is: 'remove', entry: earlier }],
  ['is to let the entry expire first', leaving(expiring, later), 0, { is: 'expire', until }],
  ['is to remove first, then to search', owing(leaving(none, later), one), 0, { is: 'remove', entry: later }],
  ['is to search for an unclear append', owing(queued, one), 0, { is: 'search', isUrgent: true }],
  ['is less urgent after the first search', owing(none, searched(one, 1, 1)), 0, { is: 'search', isUrgent: false }],
])('the duty %s', (_, state, at, due) => {
  expect(duty(state, at)).toEqual(due);
});

test.each<[sentence: string, state: V2EntryState, mayExist: boolean, is: boolean]>([
  ['without an entry need not search', none, false, false],
  ['whose value may be in the queue must search', none, true, true],
  ['with an unclear append must search', owing(none, one), false, true],
  ['with an entry need not search, even if an append is unclear', owing(queued, one), true, false],
  ['with an entry that may be behind another one must search', second, false, true],
  ['whose entry is to expire need not search', expiring, true, false],
])('a ticket %s', (_, state, mayExist, is) => {
  expect(mustSearch(state, mayExist)).toBe(is);
});

test('a ticket has left the entries that are given up or to expire', () => {
  expect(leavingIn(leaving(queued, later))).toEqual([later]);
  expect(leavingIn(leaving(expiring, later))).toEqual([later, own]);
  expect([none, queued, expiring].map(ownIn)).toEqual([undefined, own, own]);
});
