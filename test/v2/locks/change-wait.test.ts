import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { addAbortListener, Scope } from '../../../src/cancellation.ts';
import { EtcdConnectionFailed, EtcdInsufficientPermissions } from '../../../src/errors.ts';
import type { KeyEvent, WatchOptions } from '../../../src/v2/keys-api.ts';
import { ChangeWait } from '../../../src/v2/locks/change-wait.ts';
import { rejection } from '../../support/locks.ts';

/** Seconds: a poll lasts for 10 of them. */
const TTL = 30;
/** Seconds until the queue is looked at, with that TTL. */
const LOOK = 8.125;

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
  readonly tell: (index: number) => void;
  readonly fail: (error: Error) => void;
}

const eventAt = (index: number): KeyEvent => ({
  clusterId: undefined,
  sentAt: 0,
  action: 'delete',
  node: { key: '/k', dir: false, createdIndex: 1, modifiedIndex: index, nodes: [] },
  index,
});

/** A store whose polls say what a test makes them say, and else are over in time. */
function setUp() {
  const polls: Poll[] = [];
  const poll = (key: string, { after, timeout = 0, signal }: WatchOptions = {}): Promise<KeyEvent | undefined> =>
    new Promise((resolve, reject) => {
      const ending = new Scope(signal);
      const timer = setTimeout(() => ending.abort('in time'), timeout * 1000);
      addAbortListener(ending, (reason) => {
        clearTimeout(timer);
        if (reason === 'in time') resolve(undefined);
        else reject(reason);
      });
      polls.push({
        key,
        after,
        timeout,
        isOpen: () => !ending.aborted,
        tell: (index) => {
          resolve(eventAt(index));
          ending.abort('in time');
        },
        fail: (error) => ending.abort(error),
      });
    });
  const call = new AbortController();
  const watch = new ChangeWait({ watch: poll });
  const wait = (after: number, key = '/k', ttl: number | null = TTL) =>
    watch.changed(key, { after, ttl, signal: call.signal });
  const latest = (): Poll => polls.at(-1) as Poll;
  return { polls, latest, call, watch, wait };
}

/** What has become of it after so many seconds. */
async function after<T>(seconds: number, waiting: Promise<T>): Promise<T | 'waits'> {
  await vi.advanceTimersByTimeAsync(seconds * 1000);
  return Promise.race([waiting, Promise.resolve('waits' as const)]);
}

test('asks for a look at the queue in time for three members within the cap, while the poll goes on for all of it', async () => {
  const { polls, latest, wait } = setUp();
  const waiting = wait(5);
  expect(await after(LOOK - 0.1, waiting)).toBe('waits');
  expect(await after(0.1, waiting)).toEqual({ by: 'silence' });
  const next = wait(6);
  expect(await after(1.8, next)).toBe('waits');
  expect(polls).toHaveLength(1);
  expect(await after(0.2, next)).toBe('waits');
  expect(polls).toHaveLength(2);
  // From where the look was.
  expect(latest()).toMatchObject({ after: 6, timeout: 10 });
  latest().tell(7);
  expect(await next).toEqual({ by: 'event', index: 7 });
});

test.each([
  [6, 1.25],
  [3600, 18.125],
  [null, 18.125],
])('with a TTL of %j asks for a look after %d seconds, within a third of its TTL, or 20', async (ttl, seconds) => {
  const { wait } = setUp();
  const waiting = wait(5, '/k', ttl);
  expect(await after(seconds - 0.01, waiting)).toBe('waits');
  expect(await after(0.01, waiting)).toEqual({ by: 'silence' });
});

test(`looks every ${LOOK} seconds, and polls every 10`, async () => {
  const { polls, wait } = setUp();
  for (let look = 1; look <= 19; look += 1) expect(await after(LOOK, wait(look))).toEqual({ by: 'silence' });
  expect(polls).toHaveLength(16);
});

test('hears of an event that came during the look', async () => {
  const { polls, latest, wait } = setUp();
  await after(LOOK, wait(5));
  latest().tell(7);
  expect(await wait(6)).toEqual({ by: 'event', index: 7 });
  expect(polls).toHaveLength(1);
});

test('does not ask for another look because of an event that the look has shown', async () => {
  const { polls, latest, wait } = setUp();
  await after(LOOK, wait(5));
  latest().tell(6);
  const waiting = wait(6);
  expect(await after(1, waiting)).toBe('waits');
  expect(polls).toHaveLength(2);
  latest().tell(8);
  expect(await waiting).toEqual({ by: 'event', index: 8 });
});

test('believes a store that tells of an older event than was asked for, lest it be asked again and again', async () => {
  const { polls, latest, wait } = setUp();
  const waiting = wait(5);
  latest().tell(5);
  expect(await waiting).toEqual({ by: 'event', index: 5 });
  expect(polls).toHaveLength(1);
});

test('polls anew after a look that took so long that another member was asked', async () => {
  const { polls, wait } = setUp();
  await after(LOOK, wait(5));
  await after(0.7, Promise.resolve());
  const waiting = wait(6);
  expect(polls.map(({ isOpen }) => isOpen())).toEqual([false, true]);
  expect(await after(0, waiting)).toBe('waits');
});

test('polls another key as soon as that is the one to wait for', async () => {
  const { polls, latest, wait } = setUp();
  await after(LOOK, wait(5));
  const waiting = wait(6, '/other');
  expect(polls.map(({ isOpen }) => isOpen())).toEqual([false, true]);
  expect(latest()).toMatchObject({ key: '/other', after: 6 });
  latest().tell(7);
  expect(await waiting).toEqual({ by: 'event', index: 7 });
});

test('a poll that is lost during the look is trouble, and only that', async () => {
  const { latest, wait } = setUp();
  await after(LOOK, wait(5));
  latest().fail(new EtcdConnectionFailed('reset'));
  await vi.advanceTimersByTimeAsync(100);
  expect(await wait(6)).toEqual({ by: 'failure' });
});

test('an error that does not pass ends the next wait, too, if it came during the look', async () => {
  const { latest, wait } = setUp();
  await after(LOOK, wait(5));
  const refused = new EtcdInsufficientPermissions('no', { status: 401 });
  latest().fail(refused);
  await vi.advanceTimersByTimeAsync(100);
  expect(await rejection(wait(6))).toBe(refused);
});

test.each<[string, (setUp: { watch: ChangeWait; call: AbortController }) => void]>([
  ['its end', ({ watch }) => watch.end()],
  ['the end of the call', ({ call }) => call.abort(new Error('aborted'))],
])('leaves no poll and no timer after %s', async (_, end) => {
  const { latest, wait, ...ends } = setUp();
  await after(LOOK, wait(5));
  expect(latest().isOpen()).toBe(true);
  end(ends);
  await vi.advanceTimersByTimeAsync(0);
  expect(latest().isOpen()).toBe(false);
  expect(vi.getTimerCount()).toBe(0);
});

test('a wait ends with its call', async () => {
  const { wait, call } = setUp();
  const waiting = rejection(wait(5));
  const reason = new Error('aborted');
  call.abort(reason);
  expect(await waiting).toBe(reason);
  expect(vi.getTimerCount()).toBe(0);
});
