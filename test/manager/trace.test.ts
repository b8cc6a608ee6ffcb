import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import { EtcdConnectionFailed, type RequestTrace } from '../../src/index.ts';
import { Trace } from '../../src/manager/trace.ts';
import type { OwnEntry } from '../../src/recipe/store.ts';
import { freshName, useProxy } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';

/** Resolves to the next message of a channel about this lock. */
const next = (event: string, lockName: string): Promise<RequestTrace> =>
  new Promise((resolve) => {
    const channel = `tracing:etcd-v2-lock:request:${event}`;
    const listener = (message: unknown) => {
      const trace = message as RequestTrace;
      if (trace.name === lockName) resolve({ ...trace });
    };
    subscribe(channel, listener);
    onTestFinished(() => void unsubscribe(channel, listener));
  });

test('a renewal names the member that answered, and a failed one the member that failed', async () => {
  const name = freshName();
  const proxy = await useProxy();
  const held = await useManager({ ttl: 3 }, { endpoints: proxy.url }).acquire(name);
  expect((await next('renewed', name)).renewal).toEqual({
    latency: expect.any(Number),
    member: proxy.url,
    error: undefined,
  });
  const heal = proxy.intercept(({ method }) => (method === 'PUT' ? { refuse: true } : undefined));
  const { renewal } = await next('renewal-failed', name);
  expect(renewal).toEqual({ latency: expect.any(Number), member: proxy.url, error: expect.any(EtcdConnectionFailed) });
  heal();
  await held.release();
});

test('without subscribers, no position and no latency is computed', () => {
  const trace = new Trace('name', { mode: 'exclusive', limit: undefined, identity: undefined });
  const own: OwnEntry = { key: 'k', value: 'v', rank: 1n, clusterId: undefined, granted: 1, sentAt: 0 };
  trace.queues({ behind: undefined, fencingToken: 1n, first: undefined, ahead: () => expect.unreachable() });
  trace.renewed(own, 0);
  trace.renewalFailed(new Error('etcd is down'), 0);
  expect(trace).toMatchObject({ position: undefined, renewal: undefined });
});
