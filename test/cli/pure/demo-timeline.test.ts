import { describe, expect, test } from 'vitest';
import { type State, Timeline } from '../../../src/cli/demo/timeline.ts';
import type { OutputLine } from '../../../src/cli/streams.ts';

type Step = readonly [contender: string, state: State, at: number];

function timelineOf(...steps: readonly Step[]): Timeline {
  const timeline = new Timeline(['a', 'bcd'], 1000);
  for (const [contender, state, at] of steps) timeline.enter(contender, state, at);
  return timeline;
}

const textOf = (line: OutputLine): string =>
  typeof line === 'string' ? line : line.map((piece) => (typeof piece === 'string' ? piece : piece.text)).join('');

/** One column per 100 ms. */
const drawn = (timeline: Timeline, now: number, end = 4000): string[] =>
  timeline.draw({ width: 37, now, end }).map(textOf);

const HANDOVER: readonly Step[] = [
  ['a', 'holds', 1000],
  ['bcd', 'waits', 1200],
  ['a', 'idle', 2000],
  ['bcd', 'holds', 2000],
  ['bcd', 'idle', 3000],
];

test('a lane shows when its contender waited and held, above the seconds', () => {
  expect(drawn(timelineOf(...HANDOVER), 4000)).toEqual([
    '  a    ██████████',
    '  bcd    ········██████████',
    '       0 s       1 s       2 s',
    '       █ holds   · waits',
  ]);
});

test('a lane ends at the present', () => {
  expect(drawn(timelineOf(...HANDOVER.slice(0, 2)), 1500).slice(0, 2)).toEqual(['  a    █████', '  bcd    ···']);
});

test('a demo that takes longer than expected gets a narrower scale, and the same width', () => {
  const lines = drawn(timelineOf(...HANDOVER), 7000);
  expect(lines.slice(0, 2)).toEqual(['  a    █████', '  bcd   ····█████']);
  expect(lines[2]).toBe('       0 s       2 s       4 s');
});

test('what happens to a contender is in its lane and in the legend', () => {
  const timeline = timelineOf(
    ['a', 'holds', 1000],
    ['a', 'idle', 1500],
    ['bcd', 'holds', 2000],
    ['bcd', 'stopped', 2500],
  );
  timeline.mark('a', 'killed', 1500);
  timeline.enter('bcd', 'idle', 3000);
  timeline.mark('bcd', 'refused', 3000);
  expect(drawn(timeline, 4000)).toEqual([
    '  a    █████✗',
    '  bcd            █████▒▒▒▒▒!',
    '       0 s       1 s       2 s',
    '       █ holds   · waits   ▒ stopped   ✗ killed   ! write refused',
  ]);
});

describe('overlaps', () => {
  test('are none if each hold begins when the one before has ended', () => {
    expect(timelineOf(...HANDOVER, ['a', 'holds', 3000], ['a', 'idle', 3500]).overlaps).toBe(0);
  });

  test('are counted, whichever is recorded first', () => {
    const steps: Step[] = [
      ['bcd', 'holds', 1999],
      ['bcd', 'idle', 2500],
      ['a', 'holds', 1000],
      ['a', 'idle', 2000],
    ];
    expect(timelineOf(...steps).overlaps).toBe(1);
  });

  test('include a hold within another one, and one during a hold that has not ended', () => {
    const steps: Step[] = [
      ['a', 'holds', 1000],
      ['bcd', 'holds', 1100],
      ['bcd', 'idle', 1200],
      ['bcd', 'holds', 1300],
    ];
    expect(timelineOf(...steps).overlaps).toBe(2);
  });

  test('leave out the time in which a contender is stopped', () => {
    expect(timelineOf(['a', 'holds', 1000], ['a', 'stopped', 1500], ['bcd', 'holds', 2000]).overlaps).toBe(0);
  });
});
