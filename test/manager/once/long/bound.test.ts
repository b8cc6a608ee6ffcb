// The record of a tick must outlive the time in which any host could begin that tick: on a store whose time these tests control.
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { LockManager } from '../../../../src/manager/manager.ts';
import { TickAttempt, type TickJob } from '../../../../src/manager/once/attempt.ts';
import { scheduleOf } from '../../../../src/manager/once/schedule.ts';
import type { Tick } from '../../../../src/manager/once/tick.ts';
import { MemoryStore } from '../../../../src/server/store/memory.ts';
import { Store } from '../../../../src/server/store/store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const HOUR = 3_600_000;
const START = Date.parse('2026-11-24T12:00:00Z');

/** A store with the true time, and hosts whose clocks differ from it. */
function useHosts(every: string) {
  const clock = new ManualClock(START);
  const keys = new MemoryStore(new Store(clock));
  onTestFinished(() => keys.close());
  const schedule = scheduleOf(every, undefined);
  const locks = new LockManager(keys);
  const ran: number[] = [];
  /** Lets a host attempt the tick that is the present one by its clock. */
  const attempt = async (ahead: number): Promise<{ outcome: string; tick: Tick | undefined }> => {
    const host = { now: () => clock.now() + ahead, after: clock.after.bind(clock) };
    const lock: TickJob['lock'] = (limits, work) => locks.request('report', limits, work);
    const job = { store: keys.store, name: 'report', label: undefined, schedule, clock: host, lock };
    return new TickAttempt(job, schedule.current(host.now())).run((_, tick) => ran.push(tick.at.getTime()));
  };
  return { clock, ran, attempt };
}

/** Differences between the clocks of two hosts are less than a day. */
const AHEAD = fc.integer({ min: -12 * HOUR + 1, max: 12 * HOUR - 1 });
const STEP = fc.oneof(
  fc.integer({ min: 0, max: 60_000 }),
  fc.integer({ min: 0, max: 2 * HOUR }),
  fc.integer({ min: 0, max: 80 * HOUR }),
);

test.each(['30s', '1h', '0 9 * * *', '0-9 8 * * 1'])(
  'every %s: no tick runs twice or after a later one while clocks differ by less than a day',
  async (every) => {
    const steps = fc.array(fc.record({ step: STEP, ahead: fc.nat({ max: 2 }) }), { minLength: 20, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(fc.tuple(AHEAD, AHEAD, AHEAD), steps, async (clocks, all) => {
        const { clock, ran, attempt } = useHosts(every);
        for (const { step, ahead } of all) {
          clock.advance(step);
          await attempt(clocks[ahead] ?? 0);
        }
        expect(ran).toEqual([...new Set(ran)].sort((a, b) => a - b));
      }),
      { numRuns: 200 },
    );
  },
);

test('a record that has expired, and clocks that differ by more than the bound: the same tick runs twice', async () => {
  const { clock, ran, attempt } = useHosts('1h');
  await attempt(0);
  clock.advance(34 * HOUR);
  expect(await attempt(-34 * HOUR)).toMatchObject({ outcome: 'ran', tick: { missed: undefined } });
  expect(ran).toEqual([START, START]);
});

test('the last host that could begin a tick finds its record, if its clock is a day behind', async () => {
  const { clock, ran, attempt } = useHosts('1h');
  await attempt(0);
  clock.advance(25 * HOUR - 1);
  expect(await attempt(-24 * HOUR)).toMatchObject({ outcome: 'taken' });
  expect(ran).toEqual([START]);
});

test('missed ticks are counted until ten ticks and a day have passed', async () => {
  const { clock, attempt } = useHosts('1h');
  await attempt(0);
  clock.advance(34 * HOUR - 1000);
  expect(await attempt(0)).toMatchObject({ outcome: 'ran', tick: { missed: 32 } });
  clock.advance(34 * HOUR);
  expect(await attempt(0)).toMatchObject({ outcome: 'ran', tick: { missed: undefined, previous: undefined } });
});
