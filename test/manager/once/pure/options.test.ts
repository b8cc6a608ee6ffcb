import { describe, expect, onTestFinished, test } from 'vitest';
import { EtcdClient, LockManager, type OnceOptions } from '../../../../src/index.ts';
import { ttlFor } from '../../../../src/manager/once/begin.ts';
import { scheduleOf } from '../../../../src/manager/once/schedule.ts';

/** Nobody listens there: a request would be reported as a warning, not thrown. */
const endpoints = 'http://127.0.0.1:1';

function managerOn(api: 'v2' | 'v3' | 'both'): LockManager {
  const client = new EtcdClient({ endpoints, api });
  onTestFinished(() => client.close());
  return new LockManager(client);
}

describe.each(['v2', 'v3'] as const)('with api %s, once() throws at once', (api) => {
  const every = '1h';

  test.each<[string, OnceOptions, string]>([
    [
      'an unknown option',
      { every, timezone: 'UTC' } as OnceOptions,
      'unknown option "timezone": did you mean "timeZone"?',
    ],
    ['an option of request() alone', { every, ifAvailable: true } as OnceOptions, 'unknown option "ifAvailable"'],
    ['no interval', {} as OnceOptions, 'every must be a string such as "15m", got undefined'],
    ['a number', { every: 3600 as never }, 'every must be a string such as "15m", got 3600'],
    ['an interval that is none', { every: 'hourly' }, 'got "hourly"'],
    ['an unknown time zone', { every: '@daily', timeZone: 'Mars' }, 'got "Mars"'],
    ['a time zone of an interval', { every, timeZone: 'UTC' }, 'timeZone is for a cron expression, got "UTC"'],
    ['a bad ttl', { every, ttl: 0 }, 'ttl must be an integer number of seconds from 1 to 2147483648, got 0'],
    ['a bad maxHold', { every, maxHold: -1 }, 'maxHold must be a number of seconds ≥ 0, got -1'],
    ['a bad label', { every, label: 7 as never }, 'label must be a string, got 7'],
    ['a bad identity', { every, identity: '' }, 'identity must not be empty, got ""'],
    ['a bad signal', { every, signal: {} as never }, 'signal must be an AbortSignal, got [object Object]'],
    ['a bad report', { every, report: 'log' as never }, 'report must be a function, got "log"'],
  ])('for %s', (_, options, message) => {
    expect(() => managerOn(api).once('report', options, () => {})).toThrow(message);
  });

  test('for a bad name', () => {
    expect(() => managerOn(api).once('', { every }, () => {})).toThrow('lock name must not be empty, got ""');
  });

  test('for a callback that is none', () => {
    expect(() => managerOn(api).once('report', { every }, 'run' as never)).toThrow(
      new TypeError('callback must be a function, got "run"'),
    );
  });
});

test('with api both, once() throws at once', () => {
  expect(() => managerOn('both').once('report', { every: '1h' }, () => {})).toThrow(
    new TypeError('ticks need a client with api "v2" or "v3", got api "both" for the lock "report"'),
  );
});

test('a job ends at the end of its `await using` block', async () => {
  const job = managerOn('v2').once('report', { every: '366d' }, () => {});
  await job[Symbol.asyncDispose]();
  await job.stopped;
});

test('a job whose signal has aborted does not begin', async () => {
  const job = managerOn('v2').once('report', { every: '366d', signal: AbortSignal.abort() }, () => {});
  await job.stopped;
});

describe('the TTL of a record', () => {
  const DAY = 86_400;

  test.each([
    ['30s', DAY + 300],
    ['1h', DAY + 36_000],
    ['1d', 11 * DAY],
    ['366d', 3661 * DAY],
  ])('for every %s is ten intervals and a day: %i s', (every, ttl) => {
    const schedule = scheduleOf(every, undefined);
    expect(ttlFor(schedule, schedule.current(Date.now()))).toBe(ttl);
  });

  test('is a day longer than the time between two ticks, however these are distributed', () => {
    const schedule = scheduleOf('0-9 8 29 2 *', undefined);
    for (let at = schedule.next(Date.parse('2028-01-01T00:00:00Z')), n = 0; n < 20; n += 1, at = schedule.next(at))
      expect(ttlFor(schedule, at)).toBeGreaterThanOrEqual((schedule.next(at) - at) / 1000 + DAY);
  });
});
