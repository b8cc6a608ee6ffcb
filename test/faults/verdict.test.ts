import { expect, test } from 'vitest';
import type { LockOutcome, Outcome } from './campaign.ts';
import { reportOn } from './report.ts';
import { brokenIn, judgeLock } from './verdict.ts';

const good: LockOutcome = {
  api: 'v2',
  lock: 'steady',
  ttl: 15,
  history: [
    { at: 0, who: 'a', kind: 'asks', uuid: 'A', timeout: 20 },
    { at: 20, who: 'a', kind: 'held', token: '1' },
    { at: 100, who: 'a', kind: 'released', token: '1' },
  ],
  queue: [
    { at: 10, index: 1, lock: 'steady', rank: 1n, action: 'queued', value: 'A' },
    { at: 110, index: 2, lock: 'steady', rank: 1n, action: 'removed', value: 'A' },
  ],
  faults: [{ kind: 'connections cut', from: 5, to: 5, targets: ['m1'] }],
  outages: [],
  stops: [],
  stalls: [],
  judged: () => true,
  sets: { fenced: { written: 1, lost: [] }, plain: { written: 1, lost: [] } },
  leftovers: [],
  revoked: [],
};

/** Two holds overlap, the later one with the lower token; `a` loses its hold too early, `b` waits too long and ends too late. */
const bad: LockOutcome = {
  ...good,
  history: [
    { at: 0, who: 'a', kind: 'asks', uuid: 'A' },
    { at: 20, who: 'a', kind: 'held', token: '2' },
    { at: 30, who: 'b', kind: 'asks', uuid: 'B', timeout: 1 },
    { at: 4000, who: 'b', kind: 'held', token: '1' },
    { at: 5000, who: 'a', kind: 'lost', token: '2' },
    { at: 5100, who: 'a', kind: 'asks' },
    { at: 6000, who: 'b', kind: 'released', token: '1' },
  ],
  queue: [{ at: 25, index: 1, lock: 'steady', rank: 1n, action: 'queued', value: 'B' }],
  sets: { fenced: { written: 5, lost: ['a 1'] }, plain: { written: 5, lost: ['a 1', 'b 1'] } },
  leftovers: ['/_locks/steady/1'],
};

const outcomeOf = (lock: LockOutcome, more: Partial<Outcome> = {}): Outcome => ({
  seed: 7,
  seconds: 60,
  locks: [lock],
  kinds: new Map([
    ['a', 'lock'],
    ['b', 'manager'],
  ]),
  leases: [],
  stuck: [],
  crashes: [],
  ...more,
});

test('a good campaign breaks no promise', () => {
  expect(brokenIn(outcomeOf(good), [judgeLock(good)])).toEqual([]);
});

test('brokenIn() lists each broken promise', () => {
  expect(
    brokenIn(outcomeOf(bad, { leases: ['777'], stuck: ['a'], crashes: ['b exited with code 1'] }), [judgeLock(bad)]),
  ).toEqual([
    'crashed: b exited with code 1',
    'did not quit: a',
    'overlap: a with token 2 from 0.02 s to 5.00 s, b with token 1 from 4.00 s to 6.00 s',
    'token not greater: a with token 2 from 0.02 s to 5.00 s, b with token 1 from 4.00 s to 6.00 s',
    'still waiting at the end: a',
    'hold lost too early: a with token 2 from 0.02 s to 5.00 s',
    'waited too long: b with entry 1 for 3975 ms from 0.03 s, due after 1000 ms: no relevant fault',
    'call ended too late: b after 3970 ms at 4.00 s, timeout 1 s',
    'update lost despite fencing: a 1',
    'leftover key: /_locks/steady/1',
    'leftover lease: 777',
  ]);
});

test('reportOn() returns one line for each figure', () => {
  expect(reportOn(outcomeOf(bad), [judgeLock(bad)])).toEqual([
    'seed 7, 60 s',
    'acquisitions: steady lock 1, steady manager 1',
    'faults: connections cut 1',
    'cluster outages: 0, longest 0 ms',
    'longest wait: b with entry 1 for 3975 ms from 0.03 s, due after 1000 ms: no relevant fault',
    'waits longer than 1000 ms: 1 of 1',
    '  b with entry 1 for 3975 ms from 0.03 s, due after 1000 ms: no relevant fault',
    'holds lost: 1; waits failed: 0; requests refused by a fence: 0',
    'lost updates: 1 of 5 with fencing, 2 of 5 without',
    'lost with fencing, not by a hold of etcdctl without its key: 1',
    'overlaps: 1',
    'entries removed by etcd by mistake: 0',
    'holds of etcdctl without its key: 0',
    'contenders that did not quit: 0',
    'leftover leases: 0',
    'leftover keys: 1',
    'holds lost too early: 1',
  ]);
});

test('an overlap after etcd has removed an entry by mistake is reported, and breaks no promise', () => {
  const revoked = { at: 50, index: 9, lock: 'steady', rank: 1n, action: 'gone', value: 'A' } as const;
  const lock: LockOutcome = {
    ...good,
    api: 'v3',
    history: [
      { at: 0, who: 'a', kind: 'asks', uuid: 'A' },
      { at: 20, who: 'a', kind: 'held', token: '3' },
      { at: 30, who: 'b', kind: 'asks', uuid: 'B' },
      { at: 60, who: 'b', kind: 'held', token: '9' },
      { at: 70, who: 'b', kind: 'released', token: '9' },
      { at: 80, who: 'a', kind: 'released', token: '3' },
    ],
    queue: [
      { at: 10, index: 1, lock: 'steady', rank: 1n, action: 'queued', value: 'A' },
      { at: 30, index: 5, lock: 'steady', rank: 5n, action: 'queued', value: 'B' },
      revoked,
      { at: 75, index: 10, lock: 'steady', rank: 5n, action: 'gone', value: 'B' },
    ],
    revoked: [revoked],
  };
  const judged = judgeLock(lock);
  expect(brokenIn(outcomeOf(lock), [judged])).toEqual([]);
  expect(reportOn(outcomeOf(lock), [judged])).toContain(
    '  overlap: a with token 3 from 0.02 s to 0.08 s, b with token 9 from 0.06 s to 0.07 s',
  );
  expect(brokenIn(outcomeOf(lock), [judgeLock({ ...lock, revoked: [] })])).toHaveLength(1);
});
