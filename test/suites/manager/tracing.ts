import { channel, tracingChannel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { describe, expect, onTestFinished } from 'vitest';
import { EtcdConnectionFailed, EtcdLockExpired, EtcdLockLost, EtcdLockTimeout } from '../../../src/errors.ts';
import type { RequestTrace } from '../../../src/manager/trace.ts';
import { rejection } from '../../support/clients.ts';
import { until } from '../../support/until.ts';
import { aborted } from '../lock/locks.ts';
import { failNextRemoval, failRenewals } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

const NAME = 'etcd-v2-lock:request';
const CALLS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;
const POINTS = [
  'wait',
  'queued',
  'requeued',
  'renewed',
  'renewal-failed',
  'held',
  'lost',
  'released',
  'outcome',
] as const;

type Step = (typeof CALLS)[number] | (typeof POINTS)[number];
/** Records the events of requests for this lock from now on, each with the trace and a copy of the trace at that time. */
function follow(lockName: string): { step: Step; trace: RequestTrace; copy: RequestTrace }[] {
  const events: { step: Step; trace: RequestTrace; copy: RequestTrace }[] = [];
  const note = (step: Step) => (message: unknown) => {
    const trace = message as RequestTrace;
    if (trace.name === lockName) events.push({ step, trace, copy: { ...trace } });
  };
  const [start, end, asyncStart, asyncEnd, error] = CALLS.map(note);
  const handlers = { start, end, asyncStart, asyncEnd, error } as Parameters<
    ReturnType<typeof tracingChannel>['subscribe']
  >[0];
  const calls = tracingChannel(NAME);
  calls.subscribe(handlers);
  const points = POINTS.map((point) => ({ at: channel(`tracing:${NAME}:${point}`), handler: note(point) }));
  for (const { at, handler } of points) at.subscribe(handler);
  onTestFinished(() => {
    calls.unsubscribe(handlers);
    for (const { at, handler } of points) at.unsubscribe(handler);
  });
  return events;
}

export function tracing(test: ManagerTest): void {
  describe('a subscriber of the tracing channel', () => {
    test('receives every event of a request from its start to its end', async ({ lockName, a }) => {
      const events = follow(lockName);
      const held = await a.locks.request(lockName, { identity: 'pod-1' }, (mine) => mine);
      expect(events.map(({ step }) => step)).toEqual([
        'start',
        'wait',
        'end',
        'queued',
        'held',
        'released',
        'outcome',
        'asyncStart',
        'asyncEnd',
      ]);
      expect(new Set(events.map(({ trace }) => trace)).size).toBe(1);
      const at = (step: Step) => events.find((one) => one.step === step)?.copy;
      const asked = { name: lockName, mode: 'exclusive', identity: 'pod-1' };
      expect(at('start')).toEqual({ ...asked });
      const { key, uuid, fencingToken } = held;
      expect(at('held')).toEqual({ ...asked, key, uuid, fencingToken, position: 1, waited: expect.any(Number) });
      expect(at('released')).toEqual({ ...at('held'), held: expect.any(Number) });
      expect(at('outcome')).toEqual({ ...at('released'), outcome: 'held' });
      expect(at('asyncEnd')?.result).toBe(held);
    });

    test('receives the limit of a semaphore', async ({ lockName, a }) => {
      const events = follow(lockName);
      await a.locks.request(lockName, { limit: 2 }, () => {});
      expect(events.find(({ step }) => step === 'held')?.copy).toMatchObject({ mode: 'exclusive', limit: 2 });
    });

    test('receives the error of a failed request', async ({ lockName, queue, a }) => {
      await queue.put('holder');
      const events = follow(lockName);
      const error = await rejection(a.locks.acquire(lockName, { timeout: 0.1 }), EtcdLockTimeout);
      // A busy machine may not read the queue within the timeout.
      const steps = events.map(({ step }) => step).filter((step) => step !== 'queued');
      expect(steps).toEqual(['start', 'wait', 'end', 'outcome', 'error', 'asyncStart', 'asyncEnd']);
      expect(events.find(({ step }) => step === 'outcome')?.copy).toMatchObject({ outcome: 'timeout', error });
      expect(events.at(-1)?.copy.error).toBe(error);
    });

    test('receives the loss of a lock, and the release after it', async ({ lockName, queue, a }) => {
      const events = follow(lockName);
      const error = await rejection(
        a.locks.request(lockName, { ttl: 2 }, async (held) => {
          await queue.remove(held.key);
          await aborted(held.signal);
        }),
        EtcdLockLost,
      );
      const [lost, released] = events.filter(({ step }) => step === 'lost' || step === 'released');
      expect(lost).toMatchObject({ step: 'lost', copy: { lost: error, held: expect.any(Number) } });
      expect(released).toMatchObject({ step: 'released', copy: { lost: error, held: lost?.copy.held } });
    });

    test('receives the release of an acquired lock after the end of its request', async ({ lockName, a }) => {
      const events = follow(lockName);
      const held = await a.locks.acquire(lockName);
      const steps = ['start', 'wait', 'end', 'queued', 'held', 'asyncStart', 'asyncEnd'];
      expect(events.map(({ step }) => step)).toEqual(steps);
      await held.release();
      await held.release();
      expect(events.map(({ step }) => step)).toEqual([...steps, 'released', 'outcome']);
    });

    test('receives the reason why a key could not be removed at once', async ({ lockName, queue, a }) => {
      const events = follow(lockName);
      const failure = new EtcdConnectionFailed('no way');
      const held = await a.locks.acquire(lockName);
      failNextRemoval(a.client, failure);
      await held.release();
      expect(events.at(-1)).toMatchObject({ step: 'outcome', copy: { cleanupError: failure, outcome: 'held' } });
      await queue.untilLength(0);
    });

    test('receives no "held" event without a hold, and no event if the signal is already aborted', async ({
      lockName,
      queue,
      a,
    }) => {
      await queue.put('holder');
      const events = follow(lockName);
      await a.locks.request(lockName, { ifAvailable: true }, () => {});
      expect(events.map(({ step }) => step)).toEqual(['start', 'wait', 'end', 'outcome', 'asyncStart', 'asyncEnd']);
      await a.locks.request(lockName, { signal: AbortSignal.abort() }, () => {}).catch(() => {});
      expect(events).toHaveLength(6);
    });

    test('receives no "wait" event of a reentrant request inside a hold', async ({ lockName, a }) => {
      await a.locks.request(lockName, async () => {
        const events = follow(lockName);
        await a.locks.request(lockName, { reentrant: true }, () => {});
        expect(events.map(({ step }) => step)).toEqual(['start', 'outcome', 'end', 'asyncStart', 'asyncEnd']);
      });
    });

    test('receives the position of each entry, and why the last one was lost', async ({ lockName, queue, a }) => {
      const [holder, other] = [await queue.put('holder'), await queue.put('other')];
      const events = follow(lockName);
      const untilQueued = (times: number) =>
        until(
          () => events.filter(({ step }) => step === 'queued'),
          ({ length }) => length === times,
        );
      const waiting = a.locks.request(lockName, (held) => held.key);
      const [, , lost] = await queue.untilLength(3);
      // Not until then has the request read the queue.
      await untilQueued(1);
      await queue.remove(other.key);
      await queue.remove(lost?.key ?? '');
      await queue.overwrite(holder.key, 'holder');
      await untilQueued(2);
      await queue.remove(holder.key);
      const key = await waiting;
      const changes = events.filter(({ step }) => step === 'queued' || step === 'requeued');
      expect(changes.map(({ step, copy }) => [step, copy.key, copy.position])).toEqual([
        ['queued', lost?.key, 3],
        ['requeued', lost?.key, 3],
        ['queued', key, 2],
      ]);
      expect(changes[1]?.copy.requeueCause).toBeInstanceOf(EtcdLockExpired);
    });

    test('receives each renewal of a waiter and of a holder, and each renewal that failed', async ({
      lockName,
      queue,
      a,
    }) => {
      const events = follow(lockName);
      const untilNext = async (wanted: Step) => {
        const seen = events.length;
        await until(
          () => events.slice(seen),
          (later) => later.some(({ step }) => step === wanted),
        );
        return events.findLast(({ step }) => step === wanted)?.copy;
      };
      const holder = await queue.put('holder');
      const waiting = a.locks.acquire(lockName, { ttl: 8 });
      const renewal = { latency: expect.any(Number), error: undefined };
      expect((await untilNext('renewed'))?.renewal).toMatchObject(renewal);
      await queue.remove(holder.key);
      const held = await waiting;
      expect((await untilNext('renewed'))?.renewal).toMatchObject(renewal);
      const error = new EtcdConnectionFailed('etcd is down');
      failRenewals(a.client, error);
      const failed = await untilNext('renewal-failed');
      expect(failed).toMatchObject({ fencingToken: held.fencingToken, renewal: { ...renewal, error } });
      await held.release();
    });

    test('does not affect the request when it throws', async ({ lockName, a }) => {
      const own = new Error('from a subscriber');
      const failing = () => {
        throw own;
      };
      const held = channel(`tracing:${NAME}:held`);
      const before = process.listeners('uncaughtException');
      process.removeAllListeners('uncaughtException');
      const uncaught = once(process, 'uncaughtException');
      held.subscribe(failing);
      try {
        expect(await a.locks.request(lockName, () => 'result')).toBe('result');
        expect((await uncaught)[0]).toBe(own);
      } finally {
        held.unsubscribe(failing);
        for (const listener of before) process.on('uncaughtException', listener);
      }
    });
  });
}
