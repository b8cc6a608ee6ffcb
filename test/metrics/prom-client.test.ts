import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { observeLocks, type PromClientOptions } from '../../src/metrics/prom-client.ts';
import { freshName, untilQueued } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';
import { between, quotedIn, rowsOf } from '../support/readme.ts';
import { holdAndTimeOut, waitRequeueHoldAndLose } from './scene.ts';

const NONE: PromClientOptions = {};

/** Observes into a registry of its own. */
function useMetrics(options: PromClientOptions = NONE) {
  const registry = new Registry();
  const stop = observeLocks({ ...options, registers: [registry] });
  onTestFinished(stop);
  /** The samples about a lock, without the prefix of their names: `name{other labels} value`. No buckets, no sums. */
  const samplesOf = async (lock: string): Promise<string[]> => {
    const lines = (await registry.metrics()).split('\n').filter((line) => line.includes(`lock="${lock}"`));
    return lines
      .filter((line) => !/_(?:bucket|sum)\{/.test(line))
      .map((line) => line.replace('etcd_lock_', '').replace(/lock="[^"]*",?/, ''));
  };
  return { registry, stop, samplesOf };
}

test('waits, holds, lost entries, losses and outcomes are counted exactly', async () => {
  const { samplesOf } = useMetrics();
  const name = freshName();
  await waitRequeueHoldAndLose(name);
  await holdAndTimeOut(useManager(), name);
  expect(await samplesOf(name)).toEqual([
    'waiting_requests{} 0',
    'holding_requests{} 0',
    'wait_duration_seconds_count{} 3',
    'hold_duration_seconds_count{} 3',
    'requeues_total{} 1',
    'requests_total{outcome="timeout"} 1',
    'requests_total{outcome="lost"} 1',
    'requests_total{outcome="error"} 0',
    'requests_total{outcome="held"} 2',
  ]);
});

test('the gauges show who waits and who holds', async () => {
  const { samplesOf } = useMetrics();
  const name = freshName();
  const held = await useManager().acquire(name);
  const waiting = [1, 2].map(() => useManager().request(name, () => {}));
  await untilQueued(name, 3);
  expect((await samplesOf(name)).slice(0, 2)).toEqual(['waiting_requests{} 2', 'holding_requests{} 1']);
  await held.release();
  await Promise.all(waiting);
  expect((await samplesOf(name)).slice(0, 2)).toEqual(['waiting_requests{} 0', 'holding_requests{} 0']);
});

test('what alerts watch is 0 from the first request for a lock, so that the first failure is an increase', async () => {
  const { samplesOf } = useMetrics();
  const name = freshName();
  const held = await useManager().acquire(name);
  const watched = [
    'requeues_total{}',
    ...['timeout', 'lost', 'error'].map((one) => `requests_total{outcome="${one}"}`),
  ];
  expect(await samplesOf(name)).toEqual(expect.arrayContaining(watched.map((sample) => `${sample} 0`)));
  await held.release();
});

test('a request that began earlier is not counted', async () => {
  const name = freshName();
  const held = await useManager().acquire(name);
  const waiting = useManager().request(name, () => {});
  await untilQueued(name, 2);
  const { samplesOf } = useMetrics();
  await held.release();
  await waiting;
  expect(await samplesOf(name)).toEqual([]);
});

test('the returned function removes the metrics, so that they can be observed again', async () => {
  const { registry, stop } = useMetrics();
  expect(() => observeLocks({ registers: [registry] })).toThrow('etcd_lock_waiting_requests');
  const held = await useManager().acquire(freshName());
  stop();
  expect(registry.getMetricsAsArray()).toEqual([]);
  await held.release();
  expect(registry.getMetricsAsArray()).toEqual([]);
  observeLocks({ registers: [registry] })();
});

test('`labelOf` groups locks', async () => {
  const { samplesOf } = useMetrics({ labelOf: (name) => name.split('/')[0] ?? '' });
  const group = freshName();
  for (const order of ['1', '2']) await useManager().request(`${group}/${order}`, () => {});
  expect(await samplesOf(group)).toContain('requests_total{outcome="held"} 2');
});

test('the page lists exactly the metrics that there are, with their types and labels', () => {
  const { registry } = useMetrics();
  const rows = rowsOf(`${between('docs/metrics.md', '| metric | type |', '\n\n')}\n`);
  const listed = rows.map(([name = '', , labels = '']) => [quotedIn(name)[0], quotedIn(labels)]);
  const metrics = registry.getMetricsAsArray() as unknown as { name: string; labelNames: string[] }[];
  expect(metrics.map(({ name, labelNames }) => [name, labelNames])).toEqual(listed);
});

test.each([
  [{ label: 'x' }, 'unknown option "label": did you mean "labelOf"?'],
  [{ labelOf: 'x' }, 'labelOf must be a function, got "x"'],
  [null, 'options must be an object, got null'],
])('%j as options is an error', (options, message) => {
  expect(() => observeLocks(options as PromClientOptions)).toThrow(new TypeError(message));
});
