import { describe, expect, test } from 'vitest';
import { judge } from './checker.ts';
import type { Event } from './history.ts';

const asks = (at: number, who: string): Event => ({ at, who, kind: 'asks' });
const held = (at: number, who: string, token: string, mode?: 'shared', until?: number): Event => ({
  at,
  who,
  kind: 'held',
  token,
  ...(mode && { mode }),
  ...(until !== undefined && { until }),
});
const lost = (at: number, who: string, token: string): Event => ({ at, who, kind: 'lost', token });
const released = (at: number, who: string, token: string): Event => ({ at, who, kind: 'released', token });
const died = (at: number, who: string): Event => ({ at, who, kind: 'died' });
const failed = (at: number, who: string): Event => ({ at, who, kind: 'failed', why: 'timed out' });

const nothing = { overlaps: [], disorder: [], waiting: [] };

describe('a history is good', () => {
  test.each<[string, Event[]]>([
    ['where nothing happened', []],
    [
      'where holds follow each other',
      [held(0, 'a', '1'), released(5, 'a', '1'), held(6, 'b', '2'), released(9, 'b', '2')],
    ],
    [
      'where the next comes in the moment of the release',
      [held(0, 'a', '1'), released(5, 'a', '1'), held(5, 'b', '2')],
    ],
    ['where a loss was told before the next hold', [held(0, 'a', '1'), lost(5, 'a', '1'), held(6, 'b', '2')]],
    ['told in any order', [held(6, 'b', '2'), released(5, 'a', '1'), held(0, 'a', '1')]],
    ['where readers run together', [held(0, 'a', '2', 'shared'), held(1, 'b', '1', 'shared')]],
    ['where one holds again and again', [held(0, 'a', '1'), released(1, 'a', '1'), held(2, 'a', '2')]],
    ['where whoever asked was told', [asks(0, 'a'), held(1, 'a', '1'), asks(2, 'b'), failed(3, 'b')]],
  ])('%s', (_, history) => {
    expect(judge(history)).toEqual(nothing);
  });

  test('where the earlier holder was stopped when the later one came', () => {
    const history = [held(0, 'a', '1'), held(6000, 'b', '2'), lost(9000, 'a', '1')];
    expect(judge(history, [{ who: 'a', from: 2000, to: 8000 }])).toEqual(nothing);
  });

  test('where it had only just begun to run again', () => {
    const history = [held(0, 'a', '1'), held(6000, 'b', '2'), lost(6010, 'a', '1')];
    expect(judge(history, [{ who: 'a', from: 2000, to: 5900 }])).toEqual(nothing);
  });

  test('where the earlier holder was killed', () => {
    const history = [asks(0, 'a'), held(1, 'a', '1'), died(5, 'a'), held(6, 'b', '2'), released(9, 'b', '2')];
    expect(judge(history)).toEqual(nothing);
  });

  test('where one that had just got the lock was stopped until it had passed on', () => {
    const history = [held(2000, 'b', '2'), held(6000, 'a', '1'), lost(6001, 'a', '1'), released(7000, 'b', '2')];
    expect(judge(history, [{ who: 'a', from: 500, to: 5900 }])).toEqual(nothing);
  });

  test('where one had its turn, but came to know of it after its known end', () => {
    const history = [held(0, 'b', '2'), held(6, 'a', '1', undefined, 5), released(9, 'b', '2')];
    expect(judge(history)).toEqual(nothing);
  });

  test('where whoever waited last was killed', () => {
    expect(judge([asks(0, 'a'), died(5, 'a')])).toEqual(nothing);
  });

  test('where the earlier hold had come to its known end', () => {
    const history: Event[] = [held(0, 'a', '1', undefined, 5), held(6, 'b', '2'), released(9, 'a', '1')];
    expect(judge(history).overlaps).toEqual([]);
  });
});

describe('a history is bad', () => {
  test.each<[string, Event[]]>([
    ['where the next comes before the release', [held(0, 'a', '1'), held(4, 'b', '2'), released(5, 'a', '1')]],
    ['where the loss is told too late', [held(0, 'a', '1'), held(4, 'b', '2'), lost(5, 'a', '1')]],
    ['where a hold never ends', [held(0, 'a', '1'), held(4, 'b', '2')]],
    ['where a writer runs beside a reader', [held(0, 'a', '1', 'shared'), held(4, 'b', '2')]],
    ['where a reader runs beside a writer', [held(0, 'a', '1'), held(4, 'b', '2', 'shared')]],
    ['where one process holds twice at a time', [held(0, 'a', '1'), held(4, 'a', '2'), released(5, 'a', '1')]],
  ])('%s', (_, history) => {
    const { overlaps } = judge(history);
    expect(overlaps).toMatchObject([[{ token: 1n }, { token: 2n }]]);
  });

  test.each([
    ['somebody else was stopped', { who: 'b', from: 2000, to: 8000 }],
    ['it was stopped later', { who: 'a', from: 7000, to: 8000 }],
    ['it ran again by then', { who: 'a', from: 2000, to: 3000 }],
  ])('where holds overlap though %s', (_, excuse) => {
    const history = [held(0, 'a', '1'), held(6000, 'b', '2'), lost(9000, 'a', '1')];
    expect(judge(history, [excuse]).overlaps).toHaveLength(1);
  });

  test('where one that was stopped gets the lock beside the other', () => {
    const history = [held(2000, 'b', '1'), held(6000, 'a', '2'), released(7000, 'b', '1')];
    expect(judge(history, [{ who: 'a', from: 500, to: 5900 }]).overlaps).toHaveLength(1);
  });

  test('where the next comes before the known end', () => {
    const history: Event[] = [held(0, 'a', '1', undefined, 5), held(4, 'b', '2'), released(9, 'a', '1')];
    expect(judge(history).overlaps).toHaveLength(1);
  });

  test('where a holder was killed only after the next one came', () => {
    expect(judge([held(0, 'a', '1'), held(4, 'b', '2'), died(5, 'a')]).overlaps).toHaveLength(1);
  });

  test.each<[string, Event[]]>([
    ['a later hold has a lower token', [held(0, 'a', '2'), released(1, 'a', '2'), held(2, 'b', '1')]],
    ['two holds have one token', [held(0, 'a', '1'), released(1, 'a', '1'), held(2, 'b', '1')]],
    ['a token of more digits sorts first as text', [held(0, 'a', '10'), released(1, 'a', '10'), held(2, 'b', '9')]],
  ])('where %s', (_, history) => {
    expect(judge(history).disorder).toHaveLength(1);
  });

  test('where somebody waits at the end', () => {
    expect(judge([asks(0, 'a'), held(1, 'a', '1'), released(2, 'a', '1'), asks(3, 'a')]).waiting).toEqual(['a']);
  });
});
