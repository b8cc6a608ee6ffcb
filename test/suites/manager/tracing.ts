import { channel, tracingChannel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { describe, expect, onTestFinished } from 'vitest';
import { EtcdConnectionFailed, EtcdLockLost, EtcdWatchTimedOut } from '../../../src/errors.ts';
import type { RequestTrace } from '../../../src/manager/trace.ts';
import { rejection } from '../../support/clients.ts';
import { aborted } from '../lock/locks.ts';
import { failNextRemoval } from '../stores/interventions.ts';
import type { ManagerTest } from './managers.ts';

const NAME = 'etcd-v2-lock:request';
const CALLS = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;
const POINTS = ['wait', 'held', 'lost', 'released'] as const;

type Step = (typeof CALLS)[number] | (typeof POINTS)[number];
type Told = RequestTrace & { readonly error?: unknown; readonly result?: unknown };

/** What is told of requests for this lock from now on: each step with what the trace said then. */
function follow(lockName: string): { step: Step; trace: Told; said: Told }[] {
  const told: { step: Step; trace: Told; said: Told }[] = [];
  const note = (step: Step) => (message: unknown) => {
    const trace = message as Told;
    if (trace.name === lockName) told.push({ step, trace, said: { ...trace } });
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
  return told;
}

export function tracing(test: ManagerTest): void {
  describe('a subscriber of the tracing channel', () => {
    test('is told of a request from its start to its end', async ({ lockName, a }) => {
      const told = follow(lockName);
      const held = await a.locks.request(lockName, { identity: 'pod-1' }, (mine) => mine);
      expect(told.map(({ step }) => step)).toEqual([
        'start',
        'wait',
        'end',
        'held',
        'released',
        'asyncStart',
        'asyncEnd',
      ]);
      expect(new Set(told.map(({ trace }) => trace)).size).toBe(1);
      const at = (step: Step) => told.find((one) => one.step === step)?.said;
      const asked = { name: lockName, mode: 'exclusive', identity: 'pod-1' };
      expect(at('start')).toEqual({ ...asked });
      const { key, uuid, fencingToken } = held;
      expect(at('held')).toEqual({ ...asked, key, uuid, fencingToken, waited: expect.any(Number) });
      expect(at('released')).toEqual({ ...at('held'), held: expect.any(Number) });
      expect(at('asyncEnd')?.result).toBe(held);
    });

    test('is told what a request failed with', async ({ lockName, queue, a }) => {
      await queue.put('holder');
      const told = follow(lockName);
      const error = await rejection(a.locks.acquire(lockName, { timeout: 0.1 }), EtcdWatchTimedOut);
      expect(told.map(({ step }) => step)).toEqual(['start', 'wait', 'end', 'error', 'asyncStart', 'asyncEnd']);
      expect(told.at(-1)?.said.error).toBe(error);
    });

    test('is told of a loss, and of the release after it', async ({ lockName, queue, a }) => {
      const told = follow(lockName);
      const error = await rejection(
        a.locks.request(lockName, { ttl: 2 }, async (held) => {
          await queue.remove(held.key);
          await aborted(held.signal);
        }),
        EtcdLockLost,
      );
      const [lost, released] = told.filter(({ step }) => step === 'lost' || step === 'released');
      expect(lost).toMatchObject({ step: 'lost', said: { lost: error, held: expect.any(Number) } });
      expect(released).toMatchObject({ step: 'released', said: { lost: error, held: lost?.said.held } });
    });

    test('is told of a hold without a callback, released after the request has ended', async ({ lockName, a }) => {
      const told = follow(lockName);
      const held = await a.locks.acquire(lockName);
      const steps = ['start', 'wait', 'end', 'held', 'asyncStart', 'asyncEnd'];
      expect(told.map(({ step }) => step)).toEqual(steps);
      await held.release();
      await held.release();
      expect(told.map(({ step }) => step)).toEqual([...steps, 'released']);
    });

    test('is told why a key could not be removed at once', async ({ lockName, queue, a }) => {
      const told = follow(lockName);
      const failure = new EtcdConnectionFailed('no way');
      const held = await a.locks.acquire(lockName);
      failNextRemoval(a.client, failure);
      await held.release();
      expect(told.at(-1)).toMatchObject({ step: 'released', said: { cleanupError: failure } });
      await queue.untilLength(0);
    });

    test('is told of no hold where there was none', async ({ lockName, queue, a }) => {
      await queue.put('holder');
      const told = follow(lockName);
      await a.locks.request(lockName, { ifAvailable: true }, () => {});
      expect(told.map(({ step }) => step)).toEqual(['start', 'wait', 'end', 'asyncStart', 'asyncEnd']);
      await a.locks.request(lockName, { signal: AbortSignal.abort() }, () => {}).catch(() => {});
      expect(told).toHaveLength(5);
    });

    test('is told of a request inside another as of one that did not wait', async ({ lockName, a }) => {
      await a.locks.request(lockName, async () => {
        const told = follow(lockName);
        await a.locks.request(lockName, { reentrant: true }, () => {});
        expect(told.map(({ step }) => step)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd']);
      });
    });

    test('does no harm when it throws', async ({ lockName, a }) => {
      const own = new Error('of a subscriber');
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
