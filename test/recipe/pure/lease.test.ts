import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EtcdConnectionFailed, EtcdLockExpired } from '../../../src/errors.ts';
import { Lease } from '../../../src/recipe/lease.ts';
import type { OwnEntry, Ticket } from '../../../src/recipe/store.ts';

/** Seconds. The default margin is a tenth of it. */
const TTL = 30;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

const entrySentAt = (sentAt: number, granted: number | null = TTL): OwnEntry => ({
  key: '/_locks/job/1',
  value: 'mine',
  rank: 1n,
  clusterId: 'c',
  granted,
  sentAt,
});

/** A lease whose renewals are answered after so many seconds. */
function setUp({ answerAfter = 0, margin }: { answerAfter?: number; margin?: number } = {}) {
  const sent: number[] = [];
  const renew = vi.fn<Ticket['renew']>(async () => {
    const sentAt = performance.now();
    sent.push(sentAt / 1000);
    await new Promise((resolve) => setTimeout(resolve, answerAfter * 1000));
    return entrySentAt(sentAt);
  });
  const ticket = { path: '/_locks/job', value: 'mine', renew } as Partial<Ticket> as Ticket;
  const begun = performance.now() / 1000;
  const lease = new Lease(ticket, entrySentAt(performance.now()), margin);
  return { ticket, lease, renew, sentAfter: () => sent.map((at) => at - begun) };
}

/** Expects that the lease is lost after so many seconds, and not before. */
async function expectLossAfter(seconds: number, lease: Lease): Promise<void> {
  await pass(seconds - 0.01);
  expect(lease.loss.aborted).toBe(false);
  await pass(0.02);
  expect(lease.loss.aborted).toBe(true);
  expect(lease.expiresIn).toBe(0);
}

describe('a lease lasts until its TTL less the margin has passed', () => {
  test.each([
    ['the default margin of a tenth', undefined, 27],
    ['a margin of 8 seconds', 8, 22],
    ['no margin', 0, 30],
  ])('since its write was sent: with %s', async (_, margin, seconds) => {
    const { lease } = setUp({ ...(margin !== undefined && { margin }) });
    expect(lease.expiresIn).toBeCloseTo(seconds);
    await expectLossAfter(seconds, lease);
    expect(lease.loss.reason).toBeInstanceOf(EtcdLockExpired);
  });

  test('since its renewal was sent, and not since the answer to it', async () => {
    const { lease, sentAfter } = setUp({ answerAfter: 2 });
    lease.keepAlive();
    await pass(12.01);
    expect(sentAfter()).toEqual([expect.closeTo(10)]);
    expect(lease.expiresIn).toBeCloseTo(27 - 2.01);
    lease.stopRenewing();
    await expectLossAfter(27 - 2.01, lease);
  });

  test('since the later write was sent that extends or updates it', async () => {
    const { lease } = setUp();
    await pass(5);
    lease.extend(entrySentAt(performance.now() - 1000));
    expect(lease.expiresIn).toBeCloseTo(26);
    lease.update(entrySentAt(performance.now() - 2000));
    expect(lease.expiresIn).toBeCloseTo(25);
    await expectLossAfter(25, lease);
  });
});

test('a lease is renewed after a third of its TTL, counted from when the last renewal was sent', async () => {
  const { lease, sentAfter } = setUp({ answerAfter: 2 });
  lease.keepAlive();
  await pass(45);
  expect(sentAfter()).toEqual([10, 20, 30, 40].map((seconds) => expect.closeTo(seconds)));
  lease.stop();
});

test('a renewal that is answered after the deadline does not extend the lease', async () => {
  const { lease, sentAfter } = setUp({ answerAfter: 18 });
  const renewed = vi.fn();
  lease.keepAlive({ renewed, renewalFailed: () => {} });
  await expectLossAfter(27, lease);
  expect(sentAfter()).toEqual([expect.closeTo(10)]);
  await pass(10);
  expect(renewed).not.toHaveBeenCalled();
  expect(lease.valid).toBe(false);
});

test('a failed renewal leaves the deadline as it is, and is repeated soon', async () => {
  const { lease, renew } = setUp();
  const failure = new EtcdConnectionFailed('no answer');
  renew.mockRejectedValueOnce(failure);
  lease.keepAlive();
  await pass(10.01);
  expect(renew).toHaveBeenCalledTimes(1);
  expect(lease.expiresIn).toBeCloseTo(27 - 10.01);
  await pass(0.2);
  expect(renew).toHaveBeenCalledTimes(2);
  expect(lease.expiresIn).toBeGreaterThan(26.7);
  lease.stop();
});

test('a renewal times out before the deadline, so that its error can be the cause of the loss', async () => {
  const { lease, renew } = setUp();
  lease.keepAlive();
  await pass(10.01);
  const { timeout } = renew.mock.lastCall?.[0] ?? expect.unreachable();
  expect(timeout).toBeCloseTo(27 - 10 - 0.05);
  lease.stop();
});

describe('a write that is about to be sent', () => {
  test('shortens the deadline if its TTL is shorter', async () => {
    const { lease } = setUp();
    await pass(1);
    lease.shortenTo(10);
    expect(lease.expiresIn).toBeCloseTo(9);
    await expectLossAfter(9, lease);
  });

  test.each([TTL, 60, null])('does not extend it if its TTL is %s', async (ttl) => {
    const { lease } = setUp();
    await pass(1);
    lease.shortenTo(ttl);
    expect(lease.expiresIn).toBeCloseTo(26);
    await expectLossAfter(26, lease);
  });
});
