import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Deadline } from '../../../src/base/time.ts';
import { Waiter } from '../../../src/manager/local-queue.ts';
import { listenersOf } from '../../support/leaks.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Creates a waiter with a timeout of one second, and records how its wait ends. */
function setUp() {
  const [caller, client] = [new AbortController(), new AbortController()];
  const ways: string[] = [];
  const { signal } = caller;
  const waiter = new Waiter<string>(
    { mode: 'exclusive', limit: undefined, signal, deadline: Deadline.after(1) },
    client.signal,
    {
      timedOut: () => 'out of time',
      enter: (turn) => ways.push(`enters with ${turn}`),
      leave: (reason) => ways.push(`leaves: ${reason}`),
    },
  );
  return {
    ways,
    held: () => ({ listeners: [signal, client.signal].map(listenersOf), timers: vi.getTimerCount() }),
    ends: {
      'its turn': () => waiter.enter('its turn'),
      'its signal': () => caller.abort('aborted'),
      'a closed client': () => client.abort('closed'),
      'its deadline': () => vi.advanceTimersByTime(1000),
    },
  };
}

test.each(['enter', 'abort'] as const)('a wait whose error for the deadline makes it %s ends once', (how) => {
  const caller = new AbortController();
  const ways: string[] = [];
  const end = { enter: () => waiter.enter('its turn'), abort: () => caller.abort('aborted') };
  const waiter: Waiter<string> = new Waiter<string>(
    { mode: 'exclusive', limit: undefined, signal: caller.signal, deadline: Deadline.after(1) },
    new AbortController().signal,
    {
      timedOut: () => {
        end[how]();
        return 'out of time';
      },
      enter: (turn) => ways.push(`enters with ${turn}`),
      leave: (reason) => ways.push(`leaves: ${reason}`),
    },
  );
  vi.advanceTimersByTime(1000);
  expect(ways).toEqual([how === 'enter' ? 'enters with its turn' : 'leaves: aborted']);
});

type End = keyof ReturnType<typeof setUp>['ends'];

test.each<[End, string]>([
  ['its turn', 'enters with its turn'],
  ['its signal', 'leaves: aborted'],
  ['a closed client', 'leaves: closed'],
  ['its deadline', 'leaves: out of time'],
])('a wait that ends by %s ends once, and leaves no listener and no timer', (end, way) => {
  const { ways, held, ends } = setUp();
  expect({ ways, ...held() }).toEqual({ ways: [], listeners: [1, 1], timers: 1 });
  ends[end]();
  expect({ ways, ...held() }).toEqual({ ways: [way], listeners: [0, 0], timers: 0 });
  for (const later of ['its signal', 'a closed client', 'its deadline'] as const) ends[later]();
  expect(ways).toEqual([way]);
});
