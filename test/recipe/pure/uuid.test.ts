import { afterEach, expect, test, vi } from 'vitest';
import { madeAt, timedUuid } from '../../../src/recipe/entries/uuid.ts';

afterEach(() => void vi.useRealTimers());

test('a timed uuid has 32 hex digits, is a version 7 of RFC 9562, and differs from others of the same millisecond', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 28) });
  const made = Array.from({ length: 1000 }, timedUuid);
  for (const uuid of made) expect(uuid).toMatch(/^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/);
  expect(new Set(made).size).toBe(1000);
  expect(new Set(made.map((uuid) => uuid.slice(-8))).size).toBe(1000);
});

test('a timed uuid says when it was made, and a later one sorts after it', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 28) });
  const first = timedUuid();
  vi.advanceTimersByTime(1);
  const second = timedUuid();
  expect(madeAt(first)).toEqual(new Date('2026-11-28T00:00:00.000Z'));
  expect(madeAt(second)).toEqual(new Date('2026-11-28T00:00:00.001Z'));
  expect(first < second).toBe(true);
});

test.each(['', 'u1', '9c2e41f22c5c4a7e9b0e3f1f0d5b7a01', '019abcde-f012-7345-8678-9abcdef01234', 'f'.repeat(32)])(
  'the uuid %j of another client does not say when it was made',
  (uuid) => {
    expect(madeAt(uuid)).toBeUndefined();
  },
);
