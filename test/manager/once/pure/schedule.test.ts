import { describe, expect, test } from 'vitest';
import { scheduleOf } from '../../../../src/manager/once/schedule.ts';

const at = (text: string): number => Date.parse(text);
const shown = (time: number): string => new Date(time).toISOString();

const HOUR = 3_600_000;

describe('a duration', () => {
  test.each([
    ['30s', '2026-11-24T13:07:30.000Z', '2026-11-24T13:08:00.000Z'],
    ['15m', '2026-11-24T13:00:00.000Z', '2026-11-24T13:15:00.000Z'],
    ['1h', '2026-11-24T13:00:00.000Z', '2026-11-24T14:00:00.000Z'],
    ['1d', '2026-11-24T00:00:00.000Z', '2026-11-25T00:00:00.000Z'],
  ])('%s has its ticks at multiples since the epoch', (every, present, next) => {
    const schedule = scheduleOf(every, undefined);
    const now = at('2026-11-24T13:07:59.999Z');
    expect([schedule.current(now), schedule.next(now)].map(shown)).toEqual([present, next]);
  });

  test('has its tick at the first millisecond', () => {
    const schedule = scheduleOf('1h', undefined);
    const tick = at('2026-11-24T13:00:00Z');
    expect(shown(schedule.current(tick))).toBe(shown(tick));
    expect(shown(schedule.current(tick - 1))).toBe(shown(tick - HOUR));
    expect(shown(schedule.next(tick))).toBe(shown(tick + HOUR));
  });

  test.each([
    [0, 0],
    [1, 0],
    [2, 1],
    [5, 4],
    [-3, 0],
  ])('has %i intervals between two ticks, and %i ticks between them', (intervals, ticks) => {
    const tick = at('2026-11-24T13:00:00Z');
    expect(scheduleOf('1h', undefined).between(tick, tick + intervals * HOUR)).toBe(ticks);
  });

  test('counts the ticks between two times that are no ticks', () => {
    const tick = at('2026-11-24T13:00:00Z');
    expect(scheduleOf('1h', undefined).between(tick - 1, tick + HOUR + 1)).toBe(2);
  });
});

describe('a cron expression', () => {
  test('is in UTC by default', () => {
    expect(shown(scheduleOf('30 2 * * *', undefined).next(at('2026-11-24T13:00:00Z')))).toBe(
      '2026-11-25T02:30:00.000Z',
    );
  });

  test('is in the time zone', () => {
    expect(shown(scheduleOf('30 2 * * *', 'Europe/Berlin').next(at('2026-11-24T13:00:00Z')))).toBe(
      '2026-11-25T01:30:00.000Z',
    );
  });

  // As cron does: only the first character decides whether a day must match both fields.
  test.each([
    ['0 3 1-31/2 * 1', ['2026-11-01', '2026-11-02', '2026-11-03']],
    ['0 3 */2 * 1', ['2026-11-09', '2026-11-23', '2026-12-07']],
    ['0 3 1 * */2', ['2026-11-01', '2026-12-01', '2027-04-01']],
    ['0 3 13 * *', ['2026-11-13', '2026-12-13', '2027-01-13']],
    ['0 3 * * 1', ['2026-11-02', '2026-11-09', '2026-11-16']],
    ['0 3 13 * 5', ['2026-11-06', '2026-11-13', '2026-11-20']],
  ])('%s is due on these days: %j', (every, days) => {
    const schedule = scheduleOf(every, undefined);
    const ticks: number[] = [];
    for (let time = at('2026-11-01T00:00:00Z'); ticks.length < days.length; time = ticks.at(-1) ?? 0)
      ticks.push(schedule.next(time));
    expect(ticks.map(shown)).toEqual(days.map((day) => `${day}T03:00:00.000Z`));
    expect(shown(schedule.current((ticks[2] ?? 0) - 1))).toBe(shown(ticks[1] ?? 0));
  });

  test('counts ticks', () => {
    const schedule = scheduleOf('0 9 * * 1-5', undefined);
    // From Friday to Wednesday.
    expect(schedule.between(at('2026-11-20T09:00:00Z'), at('2026-11-25T09:00:00Z'))).toBe(2);
  });

  test('counts at most 10,000 ticks', () => {
    const years = [at('2020-01-01T00:00:00Z'), at('2026-01-01T00:00:00Z')] as const;
    for (const every of ['* * * * *', '1s']) expect(scheduleOf(every, undefined).between(...years)).toBe(10_000);
  });

  test.each([
    ['0 2 * * *', '2026-03-29T00:59:59Z', '2026-03-29T01:00:00Z'],
    ['0 2,14 * * *', '2026-03-29T00:59:59Z', '2026-03-29T01:00:00Z'],
    ['0 1-3 * * *', '2026-03-29T00:59:59Z', '2026-03-29T01:00:00Z'],
    ['0 2 * * *', '2026-10-25T00:00:00Z', '2026-10-26T01:00:00Z'],
    ['0 2,14 * * *', '2026-10-25T00:00:00Z', '2026-10-25T13:00:00Z'],
    ['0 * * * *', '2026-03-29T00:00:00Z', '2026-03-29T01:00:00Z'],
    ['0 * * * *', '2026-10-25T00:00:00Z', '2026-10-25T01:00:00Z'],
  ])('%s in Europe/Berlin has, after %s, when the clocks change, its next tick at %s', (every, after, next) => {
    const schedule = scheduleOf(every, 'Europe/Berlin');
    expect(shown(schedule.next(at(after)))).toBe(shown(at(next)));
    expect(shown(schedule.current(at(next)))).toBe(shown(at(next)));
  });

  test.each([
    ['30 2 * * *', 'Europe/Berlin'],
    ['0,30 2 * * *', 'Europe/Berlin'],
    ['*/15 * * * *', 'Europe/Berlin'],
    ['*/7 1-3 * * *', 'Europe/Berlin'],
    ['0 2,14 * * *', 'America/New_York'],
    ['0 * * * *', 'Australia/Lord_Howe'],
    ['@hourly', 'Europe/Berlin'],
  ])('%s in %s has the same ticks forwards and backwards when the clocks change', (every, timeZone) => {
    const schedule = scheduleOf(every, timeZone);
    for (const change of ['2026-03-28', '2026-04-04', '2026-10-24', '2026-10-31', '2026-11-01'])
      for (let now = at(`${change}T20:00:00Z`); now < at(`${change}T20:00:00Z`) + 12 * HOUR; now += 601_001) {
        const [present, next] = [schedule.current(now), schedule.next(now)];
        expect(present <= now && now < next).toBe(true);
        const seen = [
          schedule.next(present),
          schedule.current(next),
          schedule.current(next - 1),
          schedule.current(present),
        ];
        expect(seen.map(shown)).toEqual([next, next, present, present].map(shown));
        expect(schedule.between(present, next)).toBe(0);
      }
  });
});

describe('bad input', () => {
  test.each([
    ['', '""'],
    ['1w', '"1w"'],
    ['0s', '"0s"'],
    ['1.5h', '"1.5h"'],
    ['-1h', '"-1h"'],
    ['367d', '"367d"'],
    ['* * * * * *', '"* * * * * *"'],
    ['? * * * *', '"? * * * *"'],
    ['0 25 * * *', '"0 25 * * *"'],
    ['0 0 30 2 *', '"0 0 30 2 *"'],
    ['2026-01-01T00:00:00', '"2026-01-01T00:00:00"'],
    ['@reboot', '"@reboot"'],
  ])('every %j throws a RangeError that shows it', (every, text) => {
    expect(() => scheduleOf(every, undefined)).toThrow(RangeError);
    expect(() => scheduleOf(every, undefined)).toThrow(text);
  });

  test.each([[3600], [null], [undefined], [{}]])('every %j throws a TypeError', (every) => {
    expect(() => scheduleOf(every, undefined)).toThrow(TypeError);
  });

  test('an unknown time zone throws a RangeError that shows it', () => {
    expect(() => scheduleOf('@daily', 'Mars/Base')).toThrow(
      new RangeError('timeZone must be an IANA name such as "Europe/Berlin", got "Mars/Base"'),
    );
  });

  test('a time zone with a duration throws a TypeError', () => {
    expect(() => scheduleOf('1h', 'UTC')).toThrow(
      new TypeError('timeZone is for a cron expression, got "UTC" with every "1h"'),
    );
  });
});
