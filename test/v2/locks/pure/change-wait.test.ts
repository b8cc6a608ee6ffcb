import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { addAbortListener, Scope } from '../../../../src/base/cancellation.ts';
import { EtcdConnectionFailed, EtcdInsufficientPermissions } from '../../../../src/errors.ts';
import type { KeyEvent, Node, WatchOptions } from '../../../../src/v2/keys-api.ts';
import { ChangeWait } from '../../../../src/v2/locks/change-wait.ts';
import { rejection } from '../../../support/locks.ts';
import { fakeTimersLeft } from '../../../support/timers.ts';

/** Seconds: a poll then lasts 10 s. */
const TTL = 30;
/** Seconds of silence, with that TTL, after which a wait ends so that the queue is read. */
const SILENCE = 8.125;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

interface Poll {
  readonly key: string;
  readonly after: number | undefined;
  readonly timeout: number | undefined;
  readonly isOpen: () => boolean;
  readonly recursive: boolean | undefined;
  readonly change: (index: number, node?: Partial<Node>) => void;
  readonly fail: (error: Error) => void;
}

const eventAt = (index: number, node: Partial<Node> = {}): KeyEvent => ({
  clusterId: undefined,
  sentAt: 0,
  action: 'delete',
  node: { key: '/k', dir: false, createdIndex: 1, modifiedIndex: index, nodes: [], ...node },
  index,
});

/** Makes a store whose polls end with the event or error that a test gives them, else at their timeout. */
function setUp() {
  const polls: Poll[] = [];
  const poll = (
    key: string,
    { after, timeout = 0, signal, recursive }: WatchOptions = {},
  ): Promise<KeyEvent | undefined> =>
    new Promise((resolve, reject) => {
      const ending = new Scope(signal);
      const timer = setTimeout(() => ending.abort('timed out'), timeout * 1000);
      addAbortListener(ending, (reason) => {
        clearTimeout(timer);
        if (reason === 'timed out') resolve(undefined);
        else reject(reason);
      });
      polls.push({
        key,
        after,
        timeout,
        recursive,
        isOpen: () => !ending.aborted,
        change: (index, node) => {
          resolve(eventAt(index, node));
          ending.abort('timed out');
        },
        fail: (error) => ending.abort(error),
      });
    });
  const call = new AbortController();
  const watch = new ChangeWait({ watch: poll });
  const wait = (after: number, key = '/k', ttl: number | null = TTL) =>
    watch.changed({ key }, { after, ttl, signal: call.signal });
  const latest = (): Poll => polls.at(-1) as Poll;
  return { polls, latest, call, watch, wait };
}

/** Returns the result of the wait if it ends within `seconds`, else `waits`. */
async function outcomeAfter<T>(seconds: number, waiting: Promise<T>): Promise<T | 'waits'> {
  await vi.advanceTimersByTimeAsync(seconds * 1000);
  return Promise.race([waiting, Promise.resolve('waits' as const)]);
}

test('a silent wait ends early enough to ask three members for the queue within the poll cap, and its poll continues', async () => {
  const { polls, latest, wait } = setUp();
  const waiting = wait(5);
  expect(await outcomeAfter(SILENCE - 0.1, waiting)).toBe('waits');
  expect(await outcomeAfter(0.1, waiting)).toEqual({ by: 'silence' });
  const next = wait(6);
  expect(await outcomeAfter(1.8, next)).toBe('waits');
  expect(polls).toHaveLength(1);
  expect(await outcomeAfter(0.2, next)).toBe('waits');
  expect(polls).toHaveLength(2);
  // The new poll starts at the index of the listing.
  expect(latest()).toMatchObject({ after: 6, timeout: 10 });
  latest().change(7);
  expect(await next).toEqual({ by: 'event', index: 7 });
});

test.each([
  [6, 1.25],
  [3600, 18.125],
  [null, 18.125],
])(
  'a silent wait with a TTL of %j ends after %d seconds: within a third of the TTL, at most 20',
  async (ttl, seconds) => {
    const { wait } = setUp();
    const waiting = wait(5, '/k', ttl);
    expect(await outcomeAfter(seconds - 0.01, waiting)).toBe('waits');
    expect(await outcomeAfter(0.01, waiting)).toEqual({ by: 'silence' });
  },
);

test(`silent waits end every ${SILENCE} seconds, and a new poll starts every 10`, async () => {
  const { polls, wait } = setUp();
  for (let index = 1; index <= 19; index += 1)
    expect(await outcomeAfter(SILENCE, wait(index))).toEqual({ by: 'silence' });
  expect(polls).toHaveLength(16);
});

test('an event that came while the queue was read ends the next wait', async () => {
  const { polls, latest, wait } = setUp();
  await outcomeAfter(SILENCE, wait(5));
  latest().change(7);
  expect(await wait(6)).toEqual({ by: 'event', index: 7 });
  expect(polls).toHaveLength(1);
});

test('an event that the listing has shown does not end the next wait', async () => {
  const { polls, latest, wait } = setUp();
  await outcomeAfter(SILENCE, wait(5));
  latest().change(6);
  const waiting = wait(6);
  expect(await outcomeAfter(1, waiting)).toBe('waits');
  expect(polls).toHaveLength(2);
  latest().change(8);
  expect(await waiting).toEqual({ by: 'event', index: 8 });
});

test('an event older than the requested ones ends the wait, so that a faulty store causes no busy loop of polls', async () => {
  const { polls, latest, wait } = setUp();
  const waiting = wait(5);
  latest().change(5);
  expect(await waiting).toEqual({ by: 'event', index: 5 });
  expect(polls).toHaveLength(1);
});

test('a new poll starts if the queue was read so slowly that another member was asked', async () => {
  const { polls, wait } = setUp();
  await outcomeAfter(SILENCE, wait(5));
  await outcomeAfter(0.7, Promise.resolve());
  const waiting = wait(6);
  expect(polls.map(({ isOpen }) => isOpen())).toEqual([false, true]);
  expect(await outcomeAfter(0, waiting)).toBe('waits');
});

test('a wait for another key ends the old poll and starts a new one', async () => {
  const { polls, latest, wait } = setUp();
  await outcomeAfter(SILENCE, wait(5));
  const waiting = wait(6, '/other');
  expect(polls.map(({ isOpen }) => isOpen())).toEqual([false, true]);
  expect(latest()).toMatchObject({ key: '/other', after: 6 });
  latest().change(7);
  expect(await waiting).toEqual({ by: 'event', index: 7 });
});

test('a poll that fails for a moment while the queue is read ends the next wait with `trouble`', async () => {
  const { latest, wait } = setUp();
  await outcomeAfter(SILENCE, wait(5));
  latest().fail(new EtcdConnectionFailed('reset'));
  await vi.advanceTimersByTimeAsync(100);
  expect(await wait(6)).toEqual({ by: 'failure' });
});

test('a poll that fails permanently while the queue is read makes the next wait reject', async () => {
  const { latest, wait } = setUp();
  await outcomeAfter(SILENCE, wait(5));
  const refused = new EtcdInsufficientPermissions('no', { httpStatus: 401 });
  latest().fail(refused);
  await vi.advanceTimersByTimeAsync(100);
  expect(await rejection(wait(6))).toBe(refused);
});

test.each<[string, (setUp: { watch: ChangeWait; call: AbortController }) => void]>([
  ['`end()`', ({ watch }) => watch.end()],
  ['the abort of the call', ({ call }) => call.abort(new Error('aborted'))],
])('no poll and no timer is left after %s', async (_, end) => {
  const { latest, wait, ...ends } = setUp();
  await outcomeAfter(SILENCE, wait(5));
  expect(latest().isOpen()).toBe(true);
  end(ends);
  await vi.advanceTimersByTimeAsync(0);
  expect(latest().isOpen()).toBe(false);
  expect(fakeTimersLeft()).toEqual([]);
});

test('an abort of the call ends the wait, with the abort reason', async () => {
  const { wait, call } = setUp();
  const waiting = rejection(wait(5));
  const reason = new Error('aborted');
  call.abort(reason);
  expect(await waiting).toBe(reason);
  expect(fakeTimersLeft()).toEqual([]);
});

describe('a wait for the removal of one of several keys', () => {
  const among = { key: '/q', among: new Set(['/q/1', '/q/2']) };

  test.each([
    ['one of them', '/q/2'],
    ['the directory', '/q'],
    ['a directory above it', '/'],
  ])('ends when %s is removed, but not by other events', async (_, removed) => {
    const { polls, latest, watch } = setUp();
    const waiting = watch.changed(among, { after: 5, ttl: TTL, signal: undefined });
    expect(latest()).toMatchObject({ key: '/q', recursive: true, after: 5 });
    latest().change(6, { key: '/q/3' });
    expect(await outcomeAfter(0, waiting)).toBe('waits');
    latest().change(7, { key: '/q/1', value: 'written again' });
    expect(await outcomeAfter(0, waiting)).toBe('waits');
    expect(polls.map((poll) => poll.after)).toEqual([5, 6, 7]);
    latest().change(8, { key: removed });
    expect(await outcomeAfter(0, waiting)).toEqual({ by: 'event', index: 8 });
  });

  test('ends with silence at the same time, however many other events there are', async () => {
    const { latest, watch } = setUp();
    const waiting = watch.changed(among, { after: 5, ttl: TTL, signal: undefined });
    expect(await outcomeAfter(SILENCE - 1, waiting)).toBe('waits');
    latest().change(6, { key: '/q/3' });
    expect(await outcomeAfter(0.9, waiting)).toBe('waits');
    expect(await outcomeAfter(0.1, waiting)).toEqual({ by: 'silence' });
  });

  test('polls no more if another event comes when the time of its poll has passed', async () => {
    const answers: ((event: KeyEvent) => void)[] = [];
    const poll = vi.fn(
      (_key: string, _options?: WatchOptions) => new Promise<KeyEvent>((resolve) => answers.push(resolve)),
    );
    const watch = new ChangeWait({ watch: poll });
    const options = { after: 5, ttl: TTL, signal: undefined };
    expect(await outcomeAfter(SILENCE, watch.changed(among, options))).toEqual({ by: 'silence' });
    // The timer of a poll stops while the event loop is blocked, so a poll may end late.
    await vi.advanceTimersByTimeAsync(2000);
    answers[0]?.(eventAt(6, { key: '/q/3' }));
    await vi.advanceTimersByTimeAsync(0);
    expect(poll).toHaveBeenCalledTimes(1);
    void watch.changed(among, options);
    expect(poll.mock.lastCall).toMatchObject(['/q', { after: 5, timeout: 10 }]);
    watch.end();
  });
});
