import { expect, test } from 'vitest';
import type { LockOutcome, Outcome } from './campaign.ts';
import { reportOn } from './report.ts';
import { brokenIn, judgeLock } from './verdict.ts';

const good: LockOutcome = {
  lock: 'steady',
  ttl: 15,
  history: [
    { at: 0, who: 'a', kind: 'asks', uuid: 'A', timeout: 20 },
    { at: 20, who: 'a', kind: 'held', token: '1' },
    { at: 100, who: 'a', kind: 'released', token: '1' },
  ],
  queue: [
    { at: 10, index: 1, lock: 'steady', token: 1n, action: 'queued', value: 'A' },
    { at: 110, index: 2, lock: 'steady', token: 1n, action: 'removed', value: 'A' },
  ],
  faults: [{ kind: 'connections cut', from: 5, to: 5, targets: ['m1'] }],
  outages: [],
  stops: [],
  judged: () => true,
  sets: { fenced: { written: 1, lost: [] }, plain: { written: 1, lost: [] } },
  leftovers: [],
};

/** Two that hold at a time, the later one with the lower number; one of them loses it, the other one is slow, twice. */
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
  queue: [{ at: 25, index: 1, lock: 'steady', token: 1n, action: 'queued', value: 'B' }],
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
  stuck: [],
  crashes: [],
  ...more,
});

test('a good campaign breaks nothing', () => {
  expect(brokenIn(outcomeOf(good), [judgeLock(good)])).toEqual([]);
});

test('a campaign tells of each thing it broke', () => {
  expect(brokenIn(outcomeOf(bad, { stuck: ['a'], crashes: ['b ended with 1'] }), [judgeLock(bad)])).toEqual([
    'crashed: b ended with 1',
    'stuck: a',
    'overlap: a with 2 from 0.02 s to 5.00 s, b with 1 from 4.00 s to 6.00 s',
    'out of order: a with 2 from 0.02 s to 5.00 s, b with 1 from 4.00 s to 6.00 s',
    'waits at the end: a',
    'lost too early: a with 2 from 0.02 s to 5.00 s',
    'too late: b with 1 for 3975 ms from 0.03 s, due after 1000 ms: nothing in the way',
    'answered too late: b after 3970 ms at 4.00 s, for 1 s',
    'lost in spite of fencing: a 1',
    'left over: /_locks/steady/1',
  ]);
});

test('a report has a line for each figure', () => {
  expect(reportOn(outcomeOf(bad), [judgeLock(bad)])).toEqual([
    'seed 7, 60 s',
    'acquisitions: steady lock 1, steady manager 1',
    'faults: connections cut 1',
    'outages of the cluster: 0, the longest 0 ms',
    'longest wait: b with 1 for 3975 ms from 0.03 s, due after 1000 ms: nothing in the way',
    'waits longer than 1000 ms: 1 of 1',
    '  b with 1 for 3975 ms from 0.03 s, due after 1000 ms: nothing in the way',
    'holds lost: 1; waits that failed: 0; writes a fence refused: 0',
    'lost updates: 1 of 5 with fencing, 2 of 5 without',
    'overlaps: 1',
    'stuck waiters: 0',
    'keys left over: 1',
    'holds that ended too early: 1',
  ]);
});
