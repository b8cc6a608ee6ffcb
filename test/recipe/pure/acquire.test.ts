import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Scope } from '../../../src/base/cancellation.ts';
import { EtcdConnectionFailed, EtcdLockExpired, EtcdLockTimeout } from '../../../src/errors.ts';
import { acquire } from '../../../src/recipe/acquire.ts';
import { Attempt, deadlineUnlessZero } from '../../../src/recipe/attempt.ts';
import { Lease } from '../../../src/recipe/lease.ts';
import type { LockStore, OwnEntry, QueueStore, Standing, Ticket } from '../../../src/recipe/store.ts';
import { rejection } from '../../support/clients.ts';

/** Seconds. */
const TTL = 30;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

const entry = (granted: number | null = TTL): OwnEntry => ({
  key: '/_locks/job/1',
  value: 'mine',
  rank: 1n,
  clusterId: 'c',
  granted,
  sentAt: performance.now(),
});

const held: Standing = { behind: undefined, fencingToken: 1n, first: undefined };

/** A ticket that holds the lock as soon as it has entered the queue, unless a test says otherwise. */
function setUp(timeout = 5) {
  const ticket = {
    path: '/_locks/job',
    value: 'mine',
    last: undefined,
    enter: vi.fn<Ticket['enter']>(async (ttl) => entry(ttl)),
    standing: vi.fn<Ticket['standing']>(async () => held),
    renew: vi.fn<Ticket['renew']>(() => new Promise(() => {})),
    leave: vi.fn<Ticket['leave']>(async () => {}),
    find: vi.fn<Ticket['find']>(),
    changed: vi.fn<Ticket['changed']>(() => new Promise(() => {})),
    verify: vi.fn<Ticket['verify']>(),
  } satisfies Ticket;
  const store = { pending: { closing: new Scope() }, clusterId: 'c' } as Partial<LockStore> as LockStore;
  const limits = { blocking: true, timeout, signal: undefined, deadline: deadlineUnlessZero(timeout) };
  const attempt = new Attempt(store, ticket.path, limits);
  const queue = {} as QueueStore;
  const begin = (ttl: number | null, lease?: Lease) =>
    acquire({ queue, ticket, ttl, margin: 3, keepAlive: false, lease }, attempt);
  return { ticket, attempt, begin };
}

/** Runs the work at once, but at a later time: no timer fires in between, as in a process that is blocked. */
function blocked<T>(seconds: number, work: () => T): T {
  const at = performance.now() + seconds * 1000;
  vi.spyOn(performance, 'now').mockImplementation(() => at);
  return work();
}

describe('an acquire of a lock that is held already', () => {
  test('shortens the hold before it sends a shorter TTL: etcd may get it although the answer is lost', async () => {
    const { ticket, begin } = setUp();
    const lease = new Lease(ticket, entry(), 3);
    await pass(1);
    const left: number[] = [];
    ticket.enter.mockImplementation(() => {
      left.push(lease.expiresIn);
      return new Promise((_, reject) => setTimeout(() => reject(new EtcdConnectionFailed('lost')), 1000));
    });
    const ended = begin(10, lease).catch((error: unknown) => error);
    await pass(0.5);
    expect(left).toEqual([expect.closeTo(7)]);
    expect(lease.expiresIn).toBeCloseTo(6.5);
    await pass(5);
    expect(await ended).toBeInstanceOf(EtcdLockTimeout);
    expect(lease.valid).toBe(false);
  });

  test('does not extend the hold before the answer has come', async () => {
    const { ticket, begin } = setUp();
    const lease = new Lease(ticket, entry(), 3);
    await pass(1);
    ticket.enter.mockImplementation(async () => {
      expect(lease.expiresIn).toBeCloseTo(26);
      return entry(60);
    });
    expect((await begin(60, lease)).lease).toBe(lease);
    expect(lease.expiresIn).toBeCloseTo(57);
    lease.stop();
  });

  test('ends the old hold if the entry is gone, and makes a new one', async () => {
    const { ticket, begin } = setUp();
    const lease = new Lease(ticket, entry(), 3);
    ticket.enter.mockResolvedValueOnce(undefined);
    const acquired = await begin(TTL, lease);
    expect(acquired.lease).not.toBe(lease);
    expect(lease.loss.reason).toBeInstanceOf(EtcdLockExpired);
    expect(acquired.lease.valid).toBe(true);
    acquired.lease.stop();
  });
});

describe('an acquire does not hold the lock', () => {
  test('if the answer that says so comes after the deadline of the entry, and removes the entry', async () => {
    const { ticket, begin } = setUp(0);
    ticket.standing.mockImplementation(async () => blocked(TTL, () => held));
    const error = await rejection(begin(TTL), EtcdLockExpired);
    expect(error.message).toContain('has expired');
    expect(ticket.leave).toHaveBeenCalledTimes(1);
  });

  test('if the entry expires while it waits', async () => {
    const { ticket, begin } = setUp(0);
    const other = { key: '/_locks/job/0', value: 'other', rank: 0n, ttl: 60 };
    ticket.standing.mockResolvedValue({ behind: other, fencingToken: 1n, first: other });
    ticket.changed.mockImplementation((_, { signal }) => {
      const scope = signal as Scope;
      return new Promise((_resolve, reject) => scope.addListener(reject));
    });
    let error: unknown;
    begin(TTL).catch((reason: unknown) => {
      error = reason;
    });
    await pass(26.9);
    expect(error).toBeUndefined();
    await pass(0.2);
    expect(error).toBeInstanceOf(EtcdLockExpired);
    expect(error).toMatchObject({ holder: { value: 'other' } });
    expect(ticket.leave).toHaveBeenCalledTimes(1);
  });

  test('if its timeout passes just when it has the lock', async () => {
    const { ticket, begin } = setUp(5);
    ticket.standing.mockImplementation(async () => {
      await pass(5);
      return held;
    });
    await rejection(begin(TTL), EtcdLockTimeout);
    expect(ticket.leave).toHaveBeenCalledTimes(1);
  });
});
