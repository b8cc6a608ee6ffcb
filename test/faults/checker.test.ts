import { describe, expect, test } from 'vitest';
import { judge } from './checker.ts';
import type { Event } from './history.ts';

const asks = (at: number, who: string): Event => ({ at, who, kind: 'asks' });
const held = (at: number, who: string, token: string, mode?: 'shared'): Event => ({
  at,
  who,
  kind: 'held',
  token,
  ...(mode && { mode }),
});
const lost = (at: number, who: string, token: string): Event => ({ at, who, kind: 'lost', token });
const released = (at: number, who: string, token: string): Event => ({ at, who, kind: 'released', token });
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
    const history = [held(0, 'a', '1'), held(6, 'b', '2'), lost(9, 'a', '1')];
    expect(judge(history, [{ who: 'a', from: 2, to: 8 }])).toEqual(nothing);
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
    ['somebody else was stopped', { who: 'b', from: 2, to: 8 }],
    ['it was stopped later', { who: 'a', from: 7, to: 8 }],
    ['it ran again by then', { who: 'a', from: 2, to: 3 }],
  ])('where holds overlap though %s', (_, excuse) => {
    const history = [held(0, 'a', '1'), held(6, 'b', '2'), lost(9, 'a', '1')];
    expect(judge(history, [excuse]).overlaps).toHaveLength(1);
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
