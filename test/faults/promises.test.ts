import { describe, expect, test } from 'vitest';
import type { Stop } from './checker.ts';
import type { Event, Span } from './history.ts';
import type { Hold } from './holds.ts';
import { answeredLate, lostEarly } from './promises.ts';

const hold: Hold = { who: 'a', token: 1n, shared: false, limit: undefined, from: 10_000, to: 40_000, end: 'lost' };

describe('lostEarly()', () => {
  test.each<[string, Span[], Stop[]]>([
    ['with an outage of five seconds in its last TTL', [{ from: 30_000, to: 35_000 }], []],
    [
      'with two outages one second apart',
      [
        { from: 30_000, to: 33_000 },
        { from: 34_000, to: 36_500 },
      ],
      [],
    ],
    ['whose contender was stopped', [], [{ who: 'a', from: 26_000, to: 39_000 }]],
  ])('ignores a lost hold %s', (_, outages, stops) => {
    expect(lostEarly([hold], outages, stops)).toEqual([]);
  });

  test.each<[string, Span[], Stop[]]>([
    ['without an outage', [], []],
    ['with an outage of less than five seconds', [{ from: 30_000, to: 34_900 }], []],
    [
      'with two outages three seconds apart',
      [
        { from: 28_000, to: 31_000 },
        { from: 34_000, to: 38_000 },
      ],
      [],
    ],
    ['long after an outage', [{ from: 15_000, to: 24_900 }], []],
    ['while only another contender was stopped', [], [{ who: 'b', from: 26_000, to: 39_000 }]],
  ])('reports a lost hold %s', (_, outages, stops) => {
    expect(lostEarly([hold], outages, stops)).toEqual([hold]);
  });

  test('ignores a hold that was released or expired, or whose contender was killed', () => {
    expect(
      lostEarly(
        [
          { ...hold, end: 'released' },
          { ...hold, end: 'died' },
          { ...hold, end: 'expired' },
        ],
        [],
        [],
      ),
    ).toEqual([]);
  });
});

describe('answeredLate()', () => {
  const asks: Event = { at: 1000, who: 'a', kind: 'asks', timeout: 20 };
  const failed = (at: number): Event => ({ at, who: 'a', kind: 'failed', why: 'timed out' });
  const other: Event = { at: 60_000, who: 'b', kind: 'failed', why: 'refused' };

  test.each<[string, Event[], Stop[]]>([
    ['that failed at its timeout of 20 s', [asks, failed(21_400)], []],
    [
      'whose process stalled for two seconds',
      [
        { ...asks, stalled: 500 },
        { ...failed(23_400), stalled: 2500 },
      ],
      [],
    ],
    ['that acquired the lock at its timeout', [asks, { at: 21_000, who: 'a', kind: 'held', token: '1' }], []],
    ['whose contender was stopped', [asks, failed(30_000)], [{ who: 'a', from: 15_000, to: 29_000 }]],
    ['whose contender was killed', [asks, { at: 30_000, who: 'a', kind: 'died' }], []],
    ['without a timeout', [{ at: 1000, who: 'a', kind: 'asks' }, failed(90_000)], []],
  ])('ignores a call %s', (_, history, stops) => {
    expect(answeredLate([...history, other], stops)).toEqual([]);
  });

  test.each<[string, Event]>([
    ['an error', failed(21_600)],
    ['a hold', { at: 21_600, who: 'a', kind: 'held', token: '1' }],
  ])('reports a call that ended with %s more than half a second after its timeout', (_, end) => {
    expect(answeredLate([asks, end], [{ who: 'b', from: 0, to: 90_000 }])).toEqual([
      { who: 'a', timeout: 20, from: 1000, to: 21_600 },
    ]);
  });
});
