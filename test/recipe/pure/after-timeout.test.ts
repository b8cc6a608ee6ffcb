import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { addAbortListener, Scope } from '../../../src/base/cancellation.ts';
import { Deadline } from '../../../src/base/time.ts';
import { EtcdLockTimeout } from '../../../src/errors.ts';
import { acquire } from '../../../src/recipe/acquire.ts';
import { Attempt, deadlineUnlessZero } from '../../../src/recipe/attempt.ts';
import { giveUp } from '../../../src/recipe/give-up.ts';
import type { Leaving } from '../../../src/recipe/leaving.ts';
import type { LockStore, QueueStore, StoreCall, Ticket } from '../../../src/recipe/store.ts';
import { rejection } from '../../support/clients.ts';

const untilAborted = ({ signal }: StoreCall = {}): Promise<never> =>
  new Promise((_, reject) => signal && addAbortListener(signal, reject));

/** A ticket whose requests are never answered. */
const ticket = {
  path: '/_locks/job',
  value: 'mine',
  leave: untilAborted,
  enter: (_, call) => untilAborted(call),
} as Partial<Ticket> as Ticket;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Resolves to the milliseconds until `call` settles. */
async function timeOf(call: Promise<unknown>): Promise<number> {
  const from = performance.now();
  const ended = call.then(
    () => performance.now(),
    () => performance.now(),
  );
  await vi.runAllTimersAsync();
  return (await ended) - from;
}

describe('the wait for a removal that gets no answer ends', () => {
  test.each([
    ['after 1 s, without a deadline', undefined, 1000],
    ['after 1 s, long before the deadline', 5, 1000],
    ['0.3 s after a deadline that passes during the removal', 0.2, 500],
    ['after 0.3 s, if the deadline passes now', 0, 300],
    ['after 0.1 s, long after the deadline', -5, 100],
  ])('%s', async (_, seconds, expected) => {
    const deadline = seconds === undefined ? {} : { deadline: Deadline.after(seconds) };
    expect(await timeOf(giveUp(ticket, deadline))).toBe(expected);
  });
});

test('an attempt whose timeout passes does not wait for the entry that it was to replace', async () => {
  const store = { pending: { closing: new Scope() } } as Partial<LockStore> as LockStore;
  const limits = { blocking: true, timeout: 0.5, signal: undefined, deadline: deadlineUnlessZero(0.5) };
  const attempt = new Attempt(store, ticket.path, limits);
  const leaving = { isSettled: false, ticket, settle: () => new Promise(() => {}) } as Partial<Leaving> as Leaving;
  const terms = { ttl: 60, margin: undefined, keepAlive: true, isLeftover: undefined };
  const ended = rejection(acquire({ queue: {} as QueueStore, ticket, leaving, ...terms }, attempt), EtcdLockTimeout);
  expect(await timeOf(ended)).toBe(800);
});
