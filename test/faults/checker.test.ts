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
const limited = (at: number, who: string, token: string, limit: number): Event => ({
  at,
  who,
  kind: 'held',
  token,
  limit,
});
const lost = (at: number, who: string, token: string): Event => ({ at, who, kind: 'lost', token });
const released = (at: number, who: string, token: string): Event => ({ at, who, kind: 'released', token });
const died = (at: number, who: string): Event => ({ at, who, kind: 'died' });
const failed = (at: number, who: string): Event => ({ at, who, kind: 'failed', why: 'timed out' });

const nothing = { overlaps: [], disorder: [], waiting: [] };

describe('judge() accepts a history', () => {
  test.each<[string, Event[]]>([
    ['without events', []],
    [
      'where holds follow each other without overlap',
      [held(0, 'a', '1'), released(5, 'a', '1'), held(6, 'b', '2'), released(9, 'b', '2')],
    ],
    [
      'where the next hold begins at the moment of the release',
      [held(0, 'a', '1'), released(5, 'a', '1'), held(5, 'b', '2')],
    ],
    ['where a loss is reported before the next hold', [held(0, 'a', '1'), lost(5, 'a', '1'), held(6, 'b', '2')]],
    ['whose events are in any order', [held(6, 'b', '2'), released(5, 'a', '1'), held(0, 'a', '1')]],
    ['where two shared holds overlap', [held(0, 'a', '2', 'shared'), held(1, 'b', '1', 'shared')]],
    [
      'where as many holds overlap as their limit says',
      [limited(0, 'a', '2', 2), limited(1, 'b', '1', 2), released(5, 'a', '2'), limited(5, 'c', '3', 2)],
    ],
    ['where one contender holds again and again', [held(0, 'a', '1'), released(1, 'a', '1'), held(2, 'a', '2')]],
    ['where every request has an outcome', [asks(0, 'a'), held(1, 'a', '1'), asks(2, 'b'), failed(3, 'b')]],
  ])('%s', (_, history) => {
    expect(judge(history)).toEqual(nothing);
  });

  test('where the earlier holder was stopped when the later hold began', () => {
    const history = [held(0, 'a', '1'), held(6000, 'b', '2'), lost(9000, 'a', '1')];
    expect(judge(history, [{ who: 'a', from: 2000, to: 8000 }])).toEqual(nothing);
  });

  test('where the earlier holder was resumed just before the later hold began', () => {
    const history = [held(0, 'a', '1'), held(6000, 'b', '2'), lost(6010, 'a', '1')];
    expect(judge(history, [{ who: 'a', from: 2000, to: 5900 }])).toEqual(nothing);
  });

  test('where the earlier holder was killed', () => {
    const history = [asks(0, 'a'), held(1, 'a', '1'), died(5, 'a'), held(6, 'b', '2'), released(9, 'b', '2')];
    expect(judge(history)).toEqual(nothing);
  });

  test('where a contender that was stopped reports its hold only after the next hold has begun', () => {
    const history = [held(2000, 'b', '2'), held(6000, 'a', '1'), lost(6001, 'a', '1'), released(7000, 'b', '2')];
    expect(judge(history, [{ who: 'a', from: 500, to: 5900 }])).toEqual(nothing);
  });

  test('where a contender learns of its hold only after the deadline', () => {
    const history = [held(0, 'b', '2'), held(6, 'a', '1', undefined, 5), released(9, 'b', '2')];
    expect(judge(history)).toEqual(nothing);
  });

  test('where the last waiter was killed', () => {
    expect(judge([asks(0, 'a'), died(5, 'a')])).toEqual(nothing);
  });

  test('where the deadline of the earlier hold has passed', () => {
    const history: Event[] = [held(0, 'a', '1', undefined, 5), held(6, 'b', '2'), released(9, 'a', '1')];
    expect(judge(history).overlaps).toEqual([]);
  });
});

describe('judge() rejects a history', () => {
  test.each<[string, Event[]]>([
    ['where the next hold begins before the release', [held(0, 'a', '1'), held(4, 'b', '2'), released(5, 'a', '1')]],
    [
      'where a loss is reported only after the next hold has begun',
      [held(0, 'a', '1'), held(4, 'b', '2'), lost(5, 'a', '1')],
    ],
    ['where the earlier hold never ends', [held(0, 'a', '1'), held(4, 'b', '2')]],
    ['where an exclusive hold begins during a shared hold', [held(0, 'a', '1', 'shared'), held(4, 'b', '2')]],
    ['where a shared hold begins during an exclusive hold', [held(0, 'a', '1'), held(4, 'b', '2', 'shared')]],
    ['where one contender has two holds at a time', [held(0, 'a', '1'), held(4, 'a', '2'), released(5, 'a', '1')]],
  ])('%s', (_, history) => {
    const { overlaps } = judge(history);
    expect(overlaps).toMatchObject([[{ token: 1n }, { token: 2n }]]);
  });

  test.each<[string, Event[]]>([
    [
      'where more holds overlap than their limit says',
      [limited(0, 'a', '1', 2), limited(1, 'b', '2', 2), limited(2, 'c', '3', 2)],
    ],
    ['where a hold with a limit begins during an exclusive hold', [held(0, 'a', '1'), limited(1, 'b', '2', 2)]],
    ['where an exclusive hold begins during one with a limit', [limited(0, 'a', '1', 2), held(1, 'b', '2')]],
  ])('%s', (_, history) => {
    expect(judge(history).overlaps).toHaveLength(1);
  });

  test.each([
    ['only the later holder was stopped', { who: 'b', from: 2000, to: 8000 }],
    ['the earlier holder was stopped only after that', { who: 'a', from: 7000, to: 8000 }],
    ['the earlier holder was resumed long before', { who: 'a', from: 2000, to: 3000 }],
  ])('where holds overlap and %s', (_, excuse) => {
    const history = [held(0, 'a', '1'), held(6000, 'b', '2'), lost(9000, 'a', '1')];
    expect(judge(history, [excuse]).overlaps).toHaveLength(1);
  });

  test('where a contender acquires the lock after a stop while another one holds it', () => {
    const history = [held(2000, 'b', '1'), held(6000, 'a', '2'), released(7000, 'b', '1')];
    expect(judge(history, [{ who: 'a', from: 500, to: 5900 }]).overlaps).toHaveLength(1);
  });

  test('where the next hold begins before the deadline of the earlier one', () => {
    const history: Event[] = [held(0, 'a', '1', undefined, 5), held(4, 'b', '2'), released(9, 'a', '1')];
    expect(judge(history).overlaps).toHaveLength(1);
  });

  test('where the earlier holder was killed only after the next hold had begun', () => {
    expect(judge([held(0, 'a', '1'), held(4, 'b', '2'), died(5, 'a')]).overlaps).toHaveLength(1);
  });

  test.each<[string, Event[]]>([
    ['a later hold has a lower token', [held(0, 'a', '2'), released(1, 'a', '2'), held(2, 'b', '1')]],
    ['two holds have the same token', [held(0, 'a', '1'), released(1, 'a', '1'), held(2, 'b', '1')]],
    [
      'a later token is lower as a number but greater as text',
      [held(0, 'a', '10'), released(1, 'a', '10'), held(2, 'b', '9')],
    ],
  ])('where %s', (_, history) => {
    expect(judge(history).disorder).toHaveLength(1);
  });

  test('where a contender still waits at the end', () => {
    expect(judge([asks(0, 'a'), held(1, 'a', '1'), released(2, 'a', '1'), asks(3, 'a')]).waiting).toEqual(['a']);
  });
});
