import { describe, expect, test } from 'vitest';
import { chosen, type Lane, lanesOf, type Span, ticksIn } from '../../../page/spans.ts';
import type { ShownEntry, ShownEvent, ShownQueue } from '../../../src/cli/ui/shapes.ts';

type Kind = ShownEvent['kind'];

const clientOf = (label: string, key: string) => ({
  identity: null,
  label,
  uuid: `uuid-${key}`,
  key: `/_locks/x/${key}`,
});

const event = (at: number, kind: Kind, label: string, key = label) => ({
  at,
  kind,
  api: 'v2' as const,
  client: clientOf(label, key),
});

const entry = (state: 'holds' | 'waits', label: string, times: Partial<ShownEntry> = {}): ShownEntry => ({
  ...clientOf(label, label),
  kind: 'this package',
  state,
  mode: 'exclusive',
  limit: null,
  ttl: null,
  waitsFor: null,
  value: null,
  seenAt: 100,
  queuedAt: null,
  heldAt: null,
  ...times,
});

/** The lanes of a lock that is recorded since the time 100. */
function lanes(history: ShownQueue['history'], entries: readonly ShownEntry[] = []): readonly Lane[] {
  const queues = [{ api: 'v2' as const, holders: 1, waiters: entries.length - 1, entries }];
  return lanesOf({
    now: 999,
    startedAt: 100,
    mayRelease: false,
    recordedSince: 100,
    stores: [],
    name: 'x',
    queues,
    history,
  });
}

/** Spans as text, such as "waits 100-200, holds 200-": the last one lasts. */
const textOf = (spans: readonly Span[]): string =>
  spans.map(({ state, from, to }) => `${state} ${from}-${to ?? ''}`).join(', ');

const texts = (all: readonly Lane[]): string[] => all.map(({ name, spans }) => `${name}: ${textOf(spans)}`);

test('a client waits, holds and ends: two spans, and a mark at the end', () => {
  const [lane, ...others] = lanes([event(200, 'queued', 'a'), event(300, 'acquired', 'a'), event(400, 'expired', 'a')]);
  expect(others).toEqual([]);
  expect(lane).toMatchObject({ name: 'a', from: 200, to: 400, marks: [{ at: 400, kind: 'expired' }] });
  expect(textOf(lane?.spans ?? [])).toBe('waits 200-300, holds 300-400');
});

test('the entries of a client are in one lane, one after the other, and those at the same time in several', () => {
  const times = (key: string, from: number) => [
    event(from, 'queued', 'a', key),
    event(from, 'acquired', 'a', key),
    event(from + 50, 'released', 'a', key),
  ];
  expect(texts(lanes([...times('1', 200), ...times('2', 250)]))).toEqual([
    'a: waits 200-200, holds 200-250, waits 250-250, holds 250-300',
  ]);
  const [first, second, ...rest] = [...times('1', 200), ...times('2', 220)].sort((one, other) => one.at - other.at);
  expect(lanes([first, second, ...rest].flatMap((each) => each ?? []))).toHaveLength(2);
});

test('an entry that is still there lasts, since when the server knows', () => {
  const held = entry('holds', 'a', { queuedAt: 150, heldAt: 200 });
  const before = entry('holds', 'b', { queuedAt: 20 });
  const waiter = entry('waits', 'c', { queuedAt: 50 });
  const known = [event(150, 'queued', 'a'), event(200, 'acquired', 'a')];
  expect(texts(lanes(known, [held, before, waiter]))).toEqual([
    'c: waits 50-',
    'b: holds 100-',
    'a: waits 150-200, holds 200-',
  ]);
});

describe('of an entry whose begin was not recorded', () => {
  test.each([
    ['acquired', 'waits 100-300, holds 300-'],
    ['released', 'holds 100-300'],
    ['left', 'waits 100-300'],
    ['expired', ''],
    ['gone', ''],
  ] as const)('"%s" shows what it did before: %j', (kind, text) => {
    expect(texts(lanes([event(300, kind, 'a')]))).toEqual([`a: ${text}`]);
  });
});

test('an entry that is created again after it has expired is a further one of its client', () => {
  const [lane] = lanes([
    event(200, 'queued', 'a'),
    event(200, 'acquired', 'a'),
    event(300, 'expired', 'a'),
    event(350, 're-created', 'a'),
    event(350, 'acquired', 'a'),
    event(400, 'released', 'a'),
  ]);
  expect(textOf(lane?.spans ?? [])).toBe('waits 200-200, holds 200-300, waits 350-350, holds 350-400');
  expect(lane?.marks.map(({ kind }) => kind)).toEqual(['expired', 're-created', 'released']);
});

test('a key used again while its end was missed ends the earlier entry', () => {
  expect(texts(lanes([event(200, 'queued', 'a'), event(300, 'queued', 'a')]))).toEqual([
    'a: waits 200-300, waits 300-',
  ]);
});

test('of too many lanes, half are the first that are still there, and half those that have ended last', () => {
  const lane = (name: string, from: number, to?: number): Lane => ({ name, api: 'v2', spans: [], marks: [], from, to });
  const present = Array.from({ length: 10 }, (_, at) => lane(`present-${at}`, at));
  const past = Array.from({ length: 10 }, (_, at) => lane(`past-${at}`, at, 100 + at));
  const names = (all: readonly Lane[], most: number): string[] => chosen(all, most).map(({ name }) => name);
  expect(names([...past, ...present], 4)).toEqual(['past-8', 'past-9', 'present-0', 'present-1']);
  expect(names([...past.slice(0, 1), ...present], 4)).toEqual(['past-0', 'present-0', 'present-1', 'present-2']);
  expect(names([...past, ...present.slice(0, 1)], 4)).toEqual(['past-7', 'past-8', 'past-9', 'present-0']);
  expect(names(past, 10)).toHaveLength(10);
});

describe('ticks', () => {
  const now = Date.UTC(2026, 10, 28, 12, 34, 56, 789);

  test.each([
    [10_000, 5000],
    [60_000, 15_000],
    [600_000, 300_000],
    [3_600_000, 900_000],
    [86_400_000, 21_600_000],
    [10 * 86_400_000, 3 * 86_400_000],
  ])('of %d ms are %d ms apart, at round times within the range', (length, step) => {
    const ticks = ticksIn(now - length, now, 4);
    expect(ticks.step).toBe(step);
    expect(ticks.at.length).toBeGreaterThan(1);
    expect(ticks.at.length).toBeLessThanOrEqual(4);
    for (const at of ticks.at) {
      expect(at).toBeGreaterThanOrEqual(now - length);
      expect(at).toBeLessThanOrEqual(now);
      const midnight = new Date(at).setHours(0, 0, 0, 0);
      expect((at - midnight) % Math.min(step, 86_400_000)).toBe(0);
    }
  });
});
