import { describe, expect, inject, test, vi } from 'vitest';
import { Timeout } from '../../src/http/timeout.ts';
import { connect, serve } from '../support/clients.ts';
import { freshName, raw } from '../support/locks.ts';
import { block } from '../support/managers.ts';
import { elapsed, moment } from '../support/stalls/stalls.mjs';
import { silent } from '../support/tcp-server.ts';

/** Runs the timeout. Resolves to the milliseconds until it ended. */
const duration = (timeout: Timeout): Promise<number> => {
  const start = performance.now();
  return new Promise((resolve) => {
    timeout.run(() => resolve(performance.now() - start));
  });
};

describe('a timeout', () => {
  test('ends when its time has passed', async () => {
    const start = moment();
    expect(await duration(new Timeout(0.3))).toBeGreaterThanOrEqual(300);
    expect(elapsed(start)).toBeLessThan(600);
  });

  test('does not count time during which the event loop is blocked', async () => {
    const ended = duration(new Timeout(0.3));
    block(1);
    // Only one of the six steps passed while the loop was blocked.
    expect(await ended).toBeGreaterThanOrEqual(1250);
  });

  test('ends even if the event loop is blocked repeatedly', async () => {
    const passes = vi.fn();
    let ended = false;
    void duration(new Timeout(0.3)).then(() => {
      ended = true;
    });
    while (!ended) {
      block(0.1);
      await new Promise(setImmediate);
      passes();
    }
    expect(passes.mock.calls.length).toBeGreaterThanOrEqual(6);
    expect(passes.mock.calls.length).toBeLessThanOrEqual(8);
  });

  test('resumes after a pause', async () => {
    const timeout = new Timeout(0.4);
    timeout.run(() => expect.unreachable());
    await new Promise((resolve) => setTimeout(resolve, 200));
    timeout.pause();
    const start = moment();
    await duration(timeout);
    expect(elapsed(start)).toBeLessThan(390);
  });

  test('of Infinity never ends, and sets no timer', () => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    const timeout = Timeout.run(Number.POSITIVE_INFINITY, () => expect.unreachable());
    timeout.pause();
    expect(timers).not.toHaveBeenCalled();
    timers.mockRestore();
  });
});

describe('a blocked event loop', () => {
  test('loses no answer that has arrived, and causes no request to another member', async () => {
    const key = `/${freshName()}`;
    await raw('PUT', key, { value: 'u1' });
    const other = await serve(silent);
    const client = connect({ endpoints: [inject('etcd'), other.url] });
    await client.get(key, { attemptTimeout: 5 });
    for (const call of [
      () => client.set(key, 'u1', { prevValue: 'u1', attemptTimeout: 1 }),
      () => client.get(key, { attemptTimeout: 1 }),
      () => client.delete(key, { prevValue: 'u1', attemptTimeout: 1 }),
    ]) {
      const answer = call();
      // The request is sent in this pass of the event loop, and answered while the loop is blocked.
      await new Promise(setImmediate);
      block(1.5);
      await answer;
    }
    expect(other.requests).toEqual([]);
  });
});
