import { metrics, trace } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { expect, onTestFinished, test } from 'vitest';
import { observeLocks } from '../../src/metrics/opentelemetry.ts';
import { freshName } from '../support/locks.ts';
import { useManager } from '../support/managers.ts';
import { between, quotedIn, rowsOf } from '../support/readme.ts';
import { until } from '../support/until.ts';
import { holdAndTimeOut, waitRequeueHoldAndLose } from './scene.ts';

/** Observes with an SDK that keeps everything in memory. */
function useSdk() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const spans = new InMemorySpanExporter();
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  const stop = observeLocks();
  onTestFinished(async () => {
    stop();
    metrics.disable();
    trace.disable();
    await reader.shutdown();
  });
  /** Everything measured so far. */
  const collect = async (): Promise<readonly MetricData[]> => {
    const { resourceMetrics } = await reader.collect();
    return resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics);
  };
  /** Name, further attributes and value (of a histogram: the count) of what is measured about a lock. */
  const measuredOf = async (lock: string): Promise<unknown[]> =>
    (await collect()).flatMap(({ descriptor, dataPoints }) =>
      dataPoints
        .filter(({ attributes }) => attributes['etcd_lock.name'] === lock)
        .map(({ attributes, value }) => {
          const outcome = attributes['etcd_lock.outcome'];
          const number = typeof value === 'number' ? value : value.count;
          return [descriptor.name, ...(outcome === undefined ? [] : [outcome]), number];
        }),
    );
  return { stop, collect, measuredOf, spans };
}

test('waits, holds, lost entries, losses and outcomes are counted exactly', async () => {
  const { measuredOf } = useSdk();
  const name = freshName();
  await waitRequeueHoldAndLose(name);
  await holdAndTimeOut(useManager(), name);
  expect(await measuredOf(name)).toEqual([
    ['etcd_lock.waiting_requests', 0],
    ['etcd_lock.holding_requests', 0],
    ['etcd_lock.wait.duration', 3],
    ['etcd_lock.hold.duration', 3],
    ['etcd_lock.requeues', 1],
    ['etcd_lock.requests', 'timeout', 1],
    ['etcd_lock.requests', 'lost', 1],
    ['etcd_lock.requests', 'error', 0],
    ['etcd_lock.requests', 'held', 2],
  ]);
});

test('the returned function ends what is open: the gauges fall to zero, and the spans end', async () => {
  const { measuredOf, stop, spans } = useSdk();
  const name = freshName();
  const held = await useManager().acquire(name);
  expect(await measuredOf(name)).toContainEqual(['etcd_lock.holding_requests', 1]);
  expect(spans.getFinishedSpans()).toEqual([]);
  stop();
  expect(await measuredOf(name)).toContainEqual(['etcd_lock.holding_requests', 0]);
  expect(spans.getFinishedSpans()).toMatchObject([{ name: 'lock', attributes: { 'etcd_lock.name': name } }]);
  await held.release();
  expect(spans.getFinishedSpans()).toHaveLength(1);
});

test('a request that began earlier is neither counted nor traced', async () => {
  const name = freshName();
  const held = await useManager().acquire(name);
  const { measuredOf, spans } = useSdk();
  await held.release();
  expect(await measuredOf(name)).toEqual([]);
  expect(spans.getFinishedSpans()).toEqual([]);
});

test('the page lists exactly the metrics and attributes that there are', async () => {
  const { collect } = useSdk();
  await waitRequeueHoldAndLose(freshName());
  const held = await useManager({ ttl: 2 }).acquire(freshName());
  const measured = await until(
    async () =>
      (await collect()).map(({ descriptor, dataPoints }) => {
        const attributes = new Set(dataPoints.flatMap((point) => Object.keys(point.attributes)));
        return [descriptor.name, [...attributes].sort()];
      }),
    (all) => all.flat(2).includes('server.address'),
  );
  await held.release();
  const rows = rowsOf(`${between('docs/metrics.md', '| metric | kind |', '\n\n')}\n`);
  const listed = rows.flatMap(([names = '', , attributes = '']) =>
    quotedIn(names).map((metric) => [metric, quotedIn(attributes).sort()]),
  );
  expect(measured).toEqual(listed);
});
