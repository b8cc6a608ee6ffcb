import fc from 'fast-check';
import { expect, test } from 'vitest';
import { schedule } from './schedule.ts';

const SEEDS = fc.integer({ min: 0, max: 2 ** 31 - 1 });

test('the same seed gives the same schedule', () => {
  fc.assert(
    fc.property(SEEDS, fc.integer({ min: 1, max: 120 }), (seed, seconds) => {
      expect(schedule(seed, seconds)).toEqual(schedule(seed, seconds));
    }),
    { numRuns: 20 },
  );
});

test('different seeds give different schedules', () => {
  const plans = new Set([1, 2, 3, 4, 5].map((seed) => JSON.stringify(schedule(seed, 60))));
  expect(plans.size).toBe(5);
});

test('faults are in order, end within the campaign, and do not overlap on one track', () => {
  fc.assert(
    fc.property(SEEDS, (seed) => {
      const plan = schedule(seed, 120);
      expect(plan.map(({ at }) => at)).toEqual(plan.map(({ at }) => at).sort((a, b) => a - b));
      for (const { at, lasting } of plan) expect(at + lasting).toBeLessThanOrEqual(120_000);
      for (const track of ['members', 'network', 'contenders']) {
        const own = plan.filter((one) => one.track === track);
        for (const [i, { at, lasting }] of own.slice(0, -1).entries())
          expect(own[i + 1]?.at).toBeGreaterThan(at + lasting);
      }
    }),
    { numRuns: 20 },
  );
});

test('a schedule of ten minutes contains every kind of fault', () => {
  const kinds = new Set(schedule(1, 600).map(({ kind }) => kind));
  expect([...kinds].sort()).toEqual([
    'answer swallowed',
    'answers lost',
    'both ways lost',
    'connections cut',
    'connections refused',
    'contender killed',
    'contender stopped',
    'holder killed',
    'holder stopped',
    'leader isolated',
    'leader killed',
    'leader paused',
    'member isolated',
    'member killed',
    'member paused',
    'network slow',
    'quorum paused',
    'requests lost',
  ]);
});

test('faults of bridges come in addition, and change no other fault', () => {
  const plan = schedule(1, 120, true);
  const ofBridges = plan.filter(({ track }) => track === 'bridges');
  expect(new Set(ofBridges.map(({ kind }) => kind))).toEqual(new Set(['bridge killed', 'bridge stopped']));
  expect(plan.filter(({ track }) => track !== 'bridges')).toEqual(schedule(1, 120));
});
