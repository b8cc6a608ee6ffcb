import { describe, expect, test, vi } from 'vitest';
import { addAbortListener, removeAbortListener, Scope, type Source } from '../../../src/base/cancellation.ts';
import { listenersOf } from '../../support/leaks.ts';

interface Abortable {
  readonly source: Source;
  readonly abort: (reason: unknown) => void;
}

const KINDS: readonly [string, () => Abortable][] = [
  ['signal', setUpSignal],
  ['scope', setUpScope],
];

describe.each(KINDS)('listeners on a %s', (_, setUp) => {
  test('are called with its reason once each, in the order they were added', () => {
    const { source, abort } = setUp();
    const called: unknown[] = [];
    for (const who of ['a', 'b', 'c']) addAbortListener(source, (reason) => called.push([who, reason]));
    abort('reason');
    expect(called).toEqual(['a', 'b', 'c'].map((who) => [who, 'reason']));
    expect(listenersOf(source)).toBe(0);
  });

  test('are not called once removed, even by another listener of the same abort', () => {
    const { source, abort } = setUp();
    const [before, behind] = [vi.fn(), vi.fn()];
    addAbortListener(source, before);
    addAbortListener(source, () => removeAbortListener(source, behind));
    addAbortListener(source, behind);
    removeAbortListener(source, before);
    abort('reason');
    expect([before, behind].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  });

  test('are called at once when the source has already aborted', () => {
    const { source, abort } = setUp();
    abort('reason');
    const late = vi.fn();
    addAbortListener(source, late);
    expect(late.mock.calls).toEqual([['reason']]);
    expect(listenersOf(source)).toBe(0);
  });

  test('can be added again after all were removed', () => {
    const { source, abort } = setUp();
    const one = vi.fn();
    addAbortListener(source, one);
    removeAbortListener(source, one);
    removeAbortListener(source, one);
    addAbortListener(source, one);
    abort('reason');
    expect(one.mock.calls).toEqual([['reason']]);
  });

  test('are not called when another source aborts', () => {
    const [first, second] = [setUp(), setUp()];
    const [ofFirst, ofSecond] = [vi.fn(), vi.fn()];
    addAbortListener(first.source, ofFirst);
    addAbortListener(second.source, ofSecond);
    removeAbortListener(second.source, ofFirst);
    second.abort('reason');
    expect(ofFirst).not.toHaveBeenCalled();
    expect(ofSecond).toHaveBeenCalledOnce();
    expect(listenersOf(first.source)).toBe(1);
  });

  test.each([1, 2, 3])('are called in the order they were added although the first of %d was removed', (count) => {
    const { source, abort } = setUp();
    const called: number[] = [];
    const all = Array.from({ length: count }, (_, which) => () => called.push(which));
    for (const one of all) addAbortListener(source, one);
    removeAbortListener(source, all[0] ?? expect.unreachable());
    for (const one of all) addAbortListener(source, one);
    abort('reason');
    expect(called).toEqual([...all.keys()].slice(1).concat(0));
  });

  test('are called once although added twice', () => {
    const { source, abort } = setUp();
    const [one, other] = [vi.fn(), vi.fn()];
    for (const who of [one, other, one, other]) addAbortListener(source, who);
    abort('reason');
    expect([one, other].map(({ mock }) => mock.calls)).toEqual([[['reason']], [['reason']]]);
  });
});

test('10,000 listeners use one event listener of the signal, and none once all are removed', () => {
  const { signal } = new AbortController();
  const all = Array.from({ length: 10_000 }, () => vi.fn());
  for (const one of all) addAbortListener(signal, one);
  expect(listenersOf(signal)).toBe(1);
  for (const one of all.slice(1)) removeAbortListener(signal, one);
  expect(listenersOf(signal)).toBe(1);
  removeAbortListener(signal, all[0] ?? expect.unreachable());
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
