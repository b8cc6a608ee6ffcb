import { describe, expect, test, vi } from 'vitest';
import { follow, Scope, type Source, unfollow } from '../src/cancellation.ts';
import { listenersOf } from './support/leaks.ts';

interface Abortable {
  readonly source: Source;
  readonly abort: (reason: unknown) => void;
}

const KINDS: readonly [string, () => Abortable][] = [
  ['signal', setUpSignal],
  ['scope', setUpScope],
];

describe.each(KINDS)('followers of a %s', (_, setUp) => {
  test('are told its reason once each, in the order they came', () => {
    const { source, abort } = setUp();
    const told: unknown[] = [];
    for (const who of ['a', 'b', 'c']) follow(source, (reason) => told.push([who, reason]));
    abort('reason');
    expect(told).toEqual(['a', 'b', 'c'].map((who) => [who, 'reason']));
    expect(listenersOf(source)).toBe(0);
  });

  test('are not told any more once they have gone, be it in the middle of the telling', () => {
    const { source, abort } = setUp();
    const [before, behind] = [vi.fn(), vi.fn()];
    follow(source, before);
    follow(source, () => unfollow(source, behind));
    follow(source, behind);
    unfollow(source, before);
    abort('reason');
    expect([before, behind].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  });

  test('may come again after all had gone', () => {
    const { source, abort } = setUp();
    const one = vi.fn();
    follow(source, one);
    unfollow(source, one);
    unfollow(source, one);
    follow(source, one);
    abort('reason');
    expect(one.mock.calls).toEqual([['reason']]);
  });

  test('of one signal are not told of another', () => {
    const [first, second] = [setUp(), setUp()];
    const [ofFirst, ofSecond] = [vi.fn(), vi.fn()];
    follow(first.source, ofFirst);
    follow(second.source, ofSecond);
    unfollow(second.source, ofFirst);
    second.abort('reason');
    expect(ofFirst).not.toHaveBeenCalled();
    expect(ofSecond).toHaveBeenCalledOnce();
    expect(listenersOf(first.source)).toBe(1);
  });

  test.each([1, 2, 3])('are told in the order they came also where the first of %d has gone', (count) => {
    const { source, abort } = setUp();
    const told: number[] = [];
    const all = Array.from({ length: count }, (_, which) => () => told.push(which));
    for (const one of all) follow(source, one);
    unfollow(source, all[0] ?? expect.unreachable());
    for (const one of all) follow(source, one);
    abort('reason');
    expect(told).toEqual([...all.keys()].slice(1).concat(0));
  });

  test('are told once though they came twice', () => {
    const { source, abort } = setUp();
    const [one, other] = [vi.fn(), vi.fn()];
    for (const who of [one, other, one, other]) follow(source, who);
    abort('reason');
    expect([one, other].map(({ mock }) => mock.calls)).toEqual([[['reason']], [['reason']]]);
  });
});

test('10,000 followers of a signal are one listener, and none when all have gone', () => {
  const { signal } = new AbortController();
  const all = Array.from({ length: 10_000 }, () => vi.fn());
  for (const one of all) follow(signal, one);
  expect(listenersOf(signal)).toBe(1);
  for (const one of all.slice(1)) unfollow(signal, one);
  expect(listenersOf(signal)).toBe(1);
  unfollow(signal, all[0] ?? expect.unreachable());
  expect(listenersOf(signal)).toBe(0);
});

function setUpSignal(): Abortable {
  const controller = new AbortController();
  return { source: controller.signal, abort: (reason) => controller.abort(reason) };
}

function setUpScope(): Abortable {
  const scope = new Scope();
  return { source: scope, abort: (reason) => scope.abort(reason) };
}
