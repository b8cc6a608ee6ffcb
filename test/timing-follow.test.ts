import { describe, expect, test, vi } from 'vitest';
import { follow, unfollow } from '../src/timing.ts';
import { listenersOf } from './support/leaks.ts';

describe('followers of a signal', () => {
  test('are told its reason once each, in the order they came', () => {
    const { signal, abort } = setUp();
    const told: unknown[] = [];
    for (const who of ['a', 'b', 'c']) follow(signal, (reason) => told.push([who, reason]));
    abort('reason');
    expect(told).toEqual(['a', 'b', 'c'].map((who) => [who, 'reason']));
    expect(listenersOf(signal)).toBe(0);
  });

  test('are one listener, however many they are, and none when all have gone', () => {
    const { signal } = setUp();
    const all = Array.from({ length: 10_000 }, () => vi.fn());
    for (const one of all) follow(signal, one);
    expect(listenersOf(signal)).toBe(1);
    for (const one of all.slice(1)) unfollow(signal, one);
    expect(listenersOf(signal)).toBe(1);
    unfollow(signal, all[0] ?? expect.unreachable());
    expect(listenersOf(signal)).toBe(0);
  });

  test('are not told any more once they have gone, be it in the middle of the telling', () => {
    const { signal, abort } = setUp();
    const [before, behind] = [vi.fn(), vi.fn()];
    follow(signal, before);
    follow(signal, () => unfollow(signal, behind));
    follow(signal, behind);
    unfollow(signal, before);
    abort('reason');
    expect([before, behind].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  });

  test('may come again after all had gone', () => {
    const { signal, abort } = setUp();
    const one = vi.fn();
    follow(signal, one);
    unfollow(signal, one);
    unfollow(signal, one);
    follow(signal, one);
    abort('reason');
    expect(one.mock.calls).toEqual([['reason']]);
  });

  test('of one signal are not told of another', () => {
    const [first, second] = [setUp(), setUp()];
    const [ofFirst, ofSecond] = [vi.fn(), vi.fn()];
    follow(first.signal, ofFirst);
    follow(second.signal, ofSecond);
    unfollow(second.signal, ofFirst);
    second.abort('reason');
    expect(ofFirst).not.toHaveBeenCalled();
    expect(ofSecond).toHaveBeenCalledOnce();
    expect(listenersOf(first.signal)).toBe(1);
  });
});

function setUp() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (reason: unknown) => controller.abort(reason) };
}
