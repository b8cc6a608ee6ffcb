import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, vi } from 'vitest';
import { Scope } from '../../../src/base/cancellation.ts';
import { EtcdClientClosed, EtcdConnectionFailed, EtcdLockTimeout, EtcdValueError } from '../../../src/errors.ts';
import type { Held } from '../../../src/manager/held.ts';
import type { OnceJob } from '../../../src/manager/once/job.ts';
import type { OnceOptions } from '../../../src/manager/once/options.ts';
import { type JobManager, startOnce } from '../../../src/manager/once/scheduler.ts';
import type { Tick, TickReport } from '../../../src/manager/once/tick.ts';
import { flow } from '../../support/flows.ts';
import { listenersOf } from '../../support/leaks.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { aborted } from '../lock/locks.ts';
import type { ManagerTest, Process } from '../manager/managers.ts';
import { beforeNext, duringNext, loseNextAnswer, requestsOf } from '../stores/interventions.ts';
import { cleanUp } from './markers.ts';

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const START = Date.parse('2026-11-24T12:30:00Z');
/** The first tick after the start, and those after it. */
const tickAt = (hours: number): Date => new Date(Date.parse('2026-11-24T13:00:00Z') + hours * HOUR);

interface HostOptions extends Omit<OnceOptions, 'every'> {
  readonly clock: ManualClock;
  readonly work?: (held: Held, tick: Tick) => unknown;
}

/** A host with a job that runs every hour by its own clock. */
interface Host {
  readonly job: OnceJob;
  /** The ticks whose callback has begun on this host. */
  readonly ticks: readonly Tick[];
  readonly reports: readonly TickReport[];
  /** Waits until this host has reported that many outcomes, and returns the last. */
  readonly reported: (count: number) => Promise<TickReport | undefined>;
}

const every = '1h';

/** A clock that a test moves, `late` milliseconds behind the others. */
const clockOf = (late = 0): ManualClock => new ManualClock(START - late);

export function ticks(test: ManagerTest): void {
  const onceTest = test.extend('start', ({ lockName, queue }) => {
    const jobs: OnceJob[] = [];
    onTestFinished(async () => {
      for (const job of jobs) job.stop();
      await Promise.allSettled(jobs.map(({ stopped }) => stopped));
    });
    return ({ client, locks }: Process, { clock, work, ...options }: HostOptions): Host => {
      cleanUp(client.store.marker(lockName), queue);
      const ticks: Tick[] = [];
      const reports: TickReport[] = [];
      const request: JobManager['request'] = (name, hold, run) => locks.request(name, hold, run);
      const job = startOnce(
        { store: client.store, defaults: {}, request },
        lockName,
        { every, report: (report) => reports.push(report), ...options },
        (held, tick) => {
          ticks.push(tick);
          return work?.(held, tick);
        },
        clock,
      );
      jobs.push(job);
      const reported = async (count: number) => {
        await until(
          () => reports,
          ({ length }) => length >= count,
        );
        expect(reports).toHaveLength(count);
        return reports.at(-1);
      };
      return { job, ticks, reports, reported };
    };
  });

  describe('once per tick', () => {
    onceTest('of two hosts exactly one runs the tick, and the other one reports which', async ({ a, b, start }) => {
      const clock = clockOf();
      const hosts = [start(a, { clock, label: 'a' }), start(b, { clock, label: 'b' })];
      clock.advance(HOUR);
      const reports = await Promise.all(hosts.map(({ reported }) => reported(1)));
      expect(hosts.flatMap(({ ticks }) => ticks)).toEqual([{ at: tickAt(0), missed: undefined, previous: undefined }]);
      const winner = reports.findIndex((report) => report?.outcome === 'ran');
      const by = ['a', 'b'][winner];
      expect(reports[1 - winner]).toMatchObject({ outcome: 'taken', at: tickAt(0), recorded: { at: tickAt(0), by } });
    });

    onceTest('the next tick knows the previous one', async ({ a, b, start }) => {
      const clock = clockOf();
      const first = start(a, { clock, label: 'web-1' });
      clock.advance(HOUR);
      await first.reported(1);
      first.job.stop();
      await first.job.stopped;
      const second = start(b, { clock });
      clock.advance(HOUR);
      await second.reported(1);
      const previous = { at: tickAt(0), by: 'web-1', state: 'ran' };
      expect(second.ticks).toEqual([{ at: tickAt(1), missed: 0, previous }]);
    });

    onceTest(
      'its callback, listeners and report run in the async context of its caller',
      async ({ queue, a, start }) => {
        const clock = clockOf();
        const calls: (readonly [what: string, flow: string | undefined])[] = [];
        const record = (what: string): void => {
          calls.push([what, flow.getStore()]);
        };
        const work = async ({ key, signal }: Held) => {
          record('callback');
          signal.addEventListener('abort', () => record('abort'));
          await queue.remove(key);
          await aborted(signal);
        };
        const { job } = flow.run('job', () => start(a, { clock, work, ttl: 6, report: () => record('report') }));
        flow.run('clock', () => clock.advance(HOUR));
        await until(
          () => calls.at(-1)?.[0],
          (last) => last === 'report',
        );
        flow.run('stopping', () => job.stop());
        await job.stopped;
        expect(calls).toEqual(['callback', 'abort', 'report'].map((what) => [what, 'job']));
      },
    );

    onceTest('a stop while the tick is being recorded does not lose it', async ({ a, start }) => {
      const clock = clockOf();
      const host = start(a, { clock });
      let stopped = false;
      a.client.intercept(async ({ kind, signal, send }) => {
        const answer = await send();
        if (kind !== 'overwrite' || stopped) return answer;
        stopped = true;
        // The answer takes so long that an abort would come first.
        setImmediate(() => host.job.stop());
        await sleep(50, undefined, { signal: signal instanceof Scope ? signal.signal : signal });
        return answer;
      });
      clock.advance(HOUR);
      expect(await host.reported(1)).toMatchObject({ outcome: 'ran', at: tickAt(0) });
      expect(host.ticks).toHaveLength(1);
      await host.job.stopped;
    });

    onceTest('a stop ends a job whose tick cannot be recorded', async ({ a, start }) => {
      const clock = clockOf();
      const host = start(a, { clock });
      a.client.intercept(async ({ kind, send }) => {
        if (kind !== 'overwrite') return send();
        host.job.stop();
        throw new EtcdConnectionFailed('etcd is down');
      });
      clock.advance(HOUR);
      await host.job.stopped;
      expect([host.ticks, host.reports]).toEqual([[], []]);
    });

    onceTest('a loss after the callback does not make the tick fail', async ({ a, start }) => {
      const clock = clockOf();
      let held: Held | undefined;
      const host = start(a, { clock, maxHold: 2, work: (lock) => (held = lock) });
      a.client.intercept(async ({ kind, send }) => {
        if (kind === 'overwrite' && held && !held.signal.aborted) await aborted(held.signal);
        return send();
      });
      clock.advance(HOUR);
      expect(await host.reported(1)).toMatchObject({ outcome: 'ran', error: undefined });
      expect(held?.signal.aborted).toBe(true);
    });

    onceTest('runs no tick that was due before the start', async ({ a, start }) => {
      const clock = clockOf();
      const host = start(a, { clock });
      clock.advance(0.4 * HOUR);
      const requests = requestsOf(a.client);
      clock.advance(0.05 * HOUR);
      expect(requests()).toEqual([]);
      expect(host.reports).toEqual([]);
    });

    onceTest('holds the lock while the callback runs, with a fencing token', async ({ a, start, queue }) => {
      const clock = clockOf();
      let token = 0n;
      const host = start(a, {
        clock,
        work: async (held) => {
          expect(await queue.entries()).toMatchObject([{ key: held.key }]);
          token = held.fencingToken;
        },
      });
      clock.advance(HOUR);
      expect(await host.reported(1)).toMatchObject({ outcome: 'ran' });
      expect(token).toBeGreaterThan(0n);
      expect(await queue.entries()).toEqual([]);
    });

    onceTest('a host whose clock is behind does not run what another one has run', async ({ a, b, start }) => {
      const ahead = clockOf();
      const behind = clockOf(20 * SECOND);
      const [first, second] = [start(a, { clock: ahead }), start(b, { clock: behind })];
      ahead.advance(0.5 * HOUR);
      await first.reported(1);
      behind.advance(0.5 * HOUR);
      expect(second.reports).toEqual([]);
      behind.advance(20 * SECOND);
      expect(await second.reported(1)).toMatchObject({ outcome: 'taken', at: tickAt(0), recorded: { state: 'ran' } });
      expect(second.ticks).toEqual([]);
    });

    onceTest('a host that is behind never runs an older tick after a newer one', async ({ a, b, start }) => {
      const [ahead, behind] = [clockOf(), clockOf()];
      const [first, second] = [start(a, { clock: ahead }), start(b, { clock: behind })];
      ahead.advance(3 * HOUR);
      await first.reported(1);
      expect(first.ticks).toMatchObject([{ at: tickAt(2) }]);
      behind.advance(HOUR);
      const recorded = { at: tickAt(2) };
      expect(await second.reported(1)).toMatchObject({ outcome: 'taken', at: tickAt(0), recorded });
    });

    onceTest('a host whose clock is set back does not run a tick twice', async ({ a, start }) => {
      const clock = clockOf();
      let shift = 0;
      const moved = { now: () => clock.now() - shift, after: clock.after.bind(clock) } as ManualClock;
      const host = start(a, { clock: moved });
      clock.advance(HOUR);
      await host.reported(1);
      shift = HOUR;
      clock.advance(60 * SECOND);
      await until(
        () => clock.outstanding,
        (timers) => timers > 0,
      );
      clock.advance(HOUR);
      expect(await host.reported(2)).toMatchObject({ outcome: 'taken', at: tickAt(0) });
      expect(host.ticks).toHaveLength(1);
    });

    onceTest('the ticks that nobody has run are counted', async ({ a, b, start }) => {
      const clock = clockOf();
      const first = start(a, { clock });
      clock.advance(HOUR);
      await first.reported(1);
      first.job.stop();
      await first.job.stopped;
      clock.advance(4 * HOUR);
      const second = start(b, { clock });
      clock.advance(HOUR);
      await second.reported(1);
      expect(second.ticks).toMatchObject([{ at: tickAt(5), missed: 4, previous: { at: tickAt(0) } }]);
    });

    onceTest('several ticks due during one callback: only the last is attempted', async ({ a, start }) => {
      const clock = clockOf();
      const host = start(a, { clock, work: () => (host.ticks.length === 1 ? clock.advance(3 * HOUR) : undefined) });
      clock.advance(HOUR);
      await host.reported(2);
      expect(host.ticks).toMatchObject([{ at: tickAt(0) }, { at: tickAt(3), missed: 2, previous: { at: tickAt(0) } }]);
    });

    onceTest('an error of the callback is reported, and the job continues', async ({ a, start }) => {
      const clock = clockOf();
      const error = new Error('no paper');
      const host = start(a, {
        clock,
        label: '',
        work: () => {
          if (host.ticks.length === 1) throw error;
        },
      });
      clock.advance(HOUR);
      expect(await host.reported(1)).toMatchObject({ outcome: 'failed', at: tickAt(0), error });
      clock.advance(HOUR);
      expect(await host.reported(2)).toMatchObject({ outcome: 'ran', at: tickAt(1) });
      expect(host.ticks[1]).toMatchObject({ missed: 0, previous: { at: tickAt(0), by: undefined, state: 'failed' } });
    });

    onceTest('a lock that is lost in the callback is reported', async ({ a, start, queue }) => {
      const clock = clockOf();
      const host = start(a, {
        clock,
        ttl: 3,
        work: async (held) => {
          await queue.remove(held.key);
          await until(
            () => held.signal.aborted,
            (aborted) => aborted,
          );
        },
      });
      clock.advance(HOUR);
      expect(await host.reported(1)).toMatchObject({ outcome: 'failed', error: { code: 'ETCD_LOCK_LOST' } });
    });

    onceTest(
      'a tick whose end was not recorded is not run again, and the next one says so',
      async ({ a, b, start }) => {
        const clock = clockOf();
        let isDown = false;
        a.client.intercept(({ kind, send }) =>
          isDown && kind === 'overwrite' ? Promise.reject(new EtcdConnectionFailed('etcd is down')) : send(),
        );
        const crashed = start(a, {
          clock,
          label: 'web-1',
          work: () => {
            isDown = true;
          },
        });
        clock.advance(HOUR);
        expect(await crashed.reported(1)).toMatchObject({ outcome: 'ran' });
        crashed.job.stop();
        const late = clockOf();
        const other = start(b, { clock: late });
        late.advance(HOUR);
        expect(await other.reported(1)).toMatchObject({ outcome: 'taken' });
        late.advance(HOUR);
        await other.reported(2);
        const previous = { at: tickAt(0), by: 'web-1', state: 'begun' };
        expect(other.ticks).toEqual([{ at: tickAt(1), missed: 0, previous }]);
      },
    );

    onceTest('a lost answer to the record of the tick does not run it twice or never', async ({ a, b, start }) => {
      const clock = clockOf();
      loseNextAnswer(a.client, 'overwrite');
      const first = start(a, { clock });
      clock.advance(HOUR);
      expect(await first.reported(1)).toMatchObject({ outcome: 'ran' });
      loseNextAnswer(a.client, 'overwrite');
      clock.advance(HOUR);
      expect(await first.reported(2)).toMatchObject({
        outcome: 'ran',
        tick: { missed: 0, previous: { state: 'ran' } },
      });
      const second = start(b, { clock: clockOf() });
      expect(first.ticks).toHaveLength(2);
      expect(second.ticks).toEqual([]);
    });

    onceTest(
      'a host that is stopped before its write, and loses the lock, does not run what another one has run',
      async ({ a, b, start, queue }) => {
        const [clock, behind] = [clockOf(), clockOf(20 * SECOND)];
        const other = start(b, { clock: behind });
        beforeNext(a.client, 'overwrite', async () => {
          for (const { key } of await queue.entries()) await queue.remove(key);
          behind.advance(HOUR);
          await other.reported(1);
        });
        const stopped = start(a, { clock });
        clock.advance(HOUR);
        expect(await stopped.reported(1)).toMatchObject({
          outcome: 'taken',
          recorded: { at: tickAt(0), state: 'ran' },
        });
        expect(stopped.ticks).toEqual([]);
        expect(other.ticks).toMatchObject([{ at: tickAt(0) }]);
      },
    );

    onceTest(
      'an expired record is not known: the tick runs, and missed is undefined',
      async ({ a, start, queue, lockName }) => {
        const clock = clockOf();
        const host = start(a, { clock });
        clock.advance(HOUR);
        await host.reported(1);
        await queue.remove(a.client.store.marker(lockName).key);
        clock.advance(HOUR);
        expect(await host.reported(2)).toMatchObject({ outcome: 'ran', at: tickAt(1) });
        expect(host.ticks[1]).toEqual({ at: tickAt(1), missed: undefined, previous: undefined });
      },
    );

    onceTest('a tick is run although the clock is set back while it is being recorded', async ({ a, start }) => {
      const clock = clockOf();
      const host = start(a, { clock });
      duringNext(a.client, 'overwrite', () => clock.advance(-HOUR));
      clock.advance(HOUR);
      expect(await host.reported(1)).toMatchObject({ outcome: 'ran', at: tickAt(0) });
    });

    onceTest('a tick recorded only after the next one is due does not run', async ({ a, start }) => {
      const clock = clockOf();
      const host = start(a, { clock });
      duringNext(a.client, 'overwrite', () => clock.advance(HOUR));
      clock.advance(HOUR);
      const error = expect.any(EtcdLockTimeout);
      await host.reported(2);
      expect(host.reports[0]).toMatchObject({ outcome: 'skipped', at: tickAt(0), error });
      expect(host.ticks).toMatchObject([{ at: tickAt(1), missed: 0, previous: { at: tickAt(0), state: 'begun' } }]);
    });

    onceTest(
      'a tick is skipped if the lock is held until the next one, which counts it',
      async ({ a, b, start, lockName, queue }) => {
        const clock = clockOf();
        const held = await b.locks.acquire(lockName);
        const host = start(a, { clock });
        clock.advance(HOUR);
        await queue.untilLength(2);
        clock.advance(HOUR);
        expect(await host.reported(1)).toMatchObject({ outcome: 'skipped', at: tickAt(0), error: { reason: 'held' } });
        expect(host.reports[0]?.error).toBeInstanceOf(EtcdLockTimeout);
        await held.release();
        expect(await host.reported(2)).toMatchObject({ outcome: 'ran', at: tickAt(1), tick: { missed: undefined } });
      },
    );

    onceTest(
      'a tick that is skipped in an outage says that etcd could not be reached',
      async ({ a, b, start, lockName, queue }) => {
        const clock = clockOf();
        const held = await b.locks.acquire(lockName);
        const host = start(a, { clock });
        clock.advance(HOUR);
        await queue.untilLength(2);
        let isOver = false;
        let reads = 0;
        a.client.intercept(({ kind, send }) => {
          if (isOver) return send();
          if (kind === 'read') reads += 1;
          return Promise.reject(new EtcdConnectionFailed('no way'));
        });
        // The host repeats the read of the record while it waits. The first read may be that of the holder.
        await until(
          () => reads,
          (count) => count >= 2,
        );
        clock.advance(HOUR);
        const report = await host.reported(1);
        expect(report?.error).toBeInstanceOf(EtcdLockTimeout);
        expect(report?.error).toMatchObject({ reason: 'unreachable', message: expect.stringMatching(/; no way$/) });
        isOver = true;
        await held.release();
        expect(await host.reported(2)).toMatchObject({ outcome: 'ran', at: tickAt(1) });
      },
    );

    onceTest('a host does not wait for the end of the callback on another one', async ({ a, b, start, queue }) => {
      const clock = clockOf();
      let finish: (() => void) | undefined;
      const work = () => new Promise<void>((resolve) => (finish = resolve));
      const first = start(a, { clock, work });
      clock.advance(HOUR);
      await until(
        () => finish,
        (done) => done !== undefined,
      );
      const behind = clockOf(20 * SECOND);
      const second = start(b, { clock: behind });
      behind.advance(HOUR);
      expect(await second.reported(1)).toMatchObject({ outcome: 'taken', recorded: { state: 'begun' } });
      expect(await queue.entries()).toHaveLength(1);
      finish?.();
      await first.reported(1);
    });

    onceTest('the callbacks of two ticks do not overlap: the second waits', async ({ a, b, start, queue }) => {
      const clock = clockOf();
      let finish: (() => void) | undefined;
      const first = start(a, { clock, work: () => new Promise<void>((resolve) => (finish = resolve)) });
      clock.advance(HOUR);
      await until(
        () => finish,
        (done) => done !== undefined,
      );
      const second = start(b, { clock });
      clock.advance(HOUR);
      await queue.untilLength(2);
      expect(second.ticks).toEqual([]);
      finish?.();
      expect(await second.reported(1)).toMatchObject({ outcome: 'ran', tick: { at: tickAt(1), missed: 0 } });
      expect(await first.reported(2)).toMatchObject({ outcome: 'taken', at: tickAt(1) });
    });

    onceTest('a value that somebody else has written is reported, and nothing runs', async ({ a, start, lockName }) => {
      const clock = clockOf();
      const host = start(a, { clock });
      await a.client.store.marker(lockName).advance({ from: undefined, to: 'mine', ttl: 600 }, {});
      clock.advance(HOUR);
      expect(await host.reported(1)).toMatchObject({ outcome: 'skipped', error: expect.any(EtcdValueError) });
      expect(String((host.reports[0] as { error: Error }).error.message)).toContain('got "mine"');
      expect(host.ticks).toEqual([]);
    });

    onceTest.for(['stop', 'signal'] as const)(
      '%s ends the job after the callback under way',
      async (how, { a, start, queue }) => {
        const clock = clockOf();
        const abort = new AbortController();
        let finish: (() => void) | undefined;
        const work = () => new Promise<void>((resolve) => (finish = resolve));
        const host = start(a, { clock, work, signal: abort.signal });
        clock.advance(HOUR);
        await until(
          () => finish,
          (done) => done !== undefined,
        );
        if (how === 'stop') host.job.stop();
        else abort.abort();
        let isStopped = false;
        void host.job.stopped.then(() => (isStopped = true));
        await queue.untilLength(1);
        expect(isStopped).toBe(false);
        finish?.();
        await host.job.stopped;
        expect(host.reports).toMatchObject([{ outcome: 'ran' }]);
        expect(clock.outstanding).toBe(0);
        expect(listenersOf(abort.signal)).toBe(0);
        expect(await queue.entries()).toEqual([]);
      },
    );

    onceTest(
      'stop ends the wait for the lock without a report, and leaves no entry',
      async ({ a, b, start, lockName, queue }) => {
        const clock = clockOf();
        const held = await b.locks.acquire(lockName);
        const host = start(a, { clock });
        clock.advance(HOUR);
        await queue.untilLength(2);
        host.job.stop();
        await host.job.stopped;
        expect(host.reports).toEqual([]);
        expect(await queue.entries()).toMatchObject([{ key: held.key }]);
        await held.release();
      },
    );

    onceTest('is over when the client is closed', async ({ openUnclosed, start, makeProcess }) => {
      const clock = clockOf();
      const { locks } = await makeProcess();
      const client = await openUnclosed();
      const host = start({ client, locks }, { clock });
      await client.close();
      await host.job.stopped;
      expect(clock.outstanding).toBe(0);
      await expect(client.store.marker('x').read({})).rejects.toThrow(EtcdClientClosed);
    });

    onceTest('an error of report stops the job, which rejects with it', async ({ a, start }) => {
      const clock = clockOf();
      const error = new Error('no log');
      const host = start(a, {
        clock,
        report: () => {
          throw error;
        },
      });
      const stopped = expect(host.job.stopped).rejects.toBe(error);
      clock.advance(HOUR);
      await stopped;
      expect(clock.outstanding).toBe(0);
    });

    onceTest('without report, a failure is a warning of the process', async ({ a, start, lockName }) => {
      const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
      onTestFinished(() => warned.mockRestore());
      const clock = clockOf();
      const work = () => Promise.reject(new Error('no paper'));
      const host = start(a, { clock, work, report: undefined });
      clock.advance(HOUR);
      await until(
        () => warned.mock.calls,
        ({ length }) => length > 0,
      );
      expect(warned.mock.calls).toEqual([
        [`the tick 2026-11-24T13:00:00.000Z of "${lockName}" failed: no paper`, { code: 'ETCD_LOCK_TICK_NOT_DONE' }],
      ]);
      expect(host.ticks).toHaveLength(1);
    });
  });
}
