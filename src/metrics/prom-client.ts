/**
 * Metrics of locks for Prometheus, by prom-client.
 * @module etcd-v2-lock/prom-client
 */

import { Counter, Gauge, type GaugeConfiguration, Histogram, register } from 'prom-client';
import type { OptionNames } from '../base/option-names.ts';
import { checkOptions, count, DURATIONS, FAILED, LATENCIES, OBSERVE_OPTIONS, type ObserveOptions } from './counts.ts';

export type { ObserveOptions } from './counts.ts';

/** Options of {@link observeLocks}. */
export interface PromClientOptions extends ObserveOptions {
  /** Where to register the metrics. Default: prom-client's global registry. */
  readonly registers?: NonNullable<GaugeConfiguration<string>['registers']>;
}

const OPTIONS = { ...OBSERVE_OPTIONS, registers: true } satisfies OptionNames<PromClientOptions>;

/**
 * Counts and times all requests of this process for locks: those of `request()` and `acquire()` of each `LockManager` that begin from now
 * on. docs/metrics.md lists the metrics, whose names begin with `etcd_lock_`.
 * @returns a function that ends this, and removes the metrics from their registries
 * @throws {TypeError} if an option does not exist or is invalid
 * @throws {Error} if a registry has metrics with these names, as after an earlier call
 * @example
 * import { observeLocks } from 'etcd-v2-lock/prom-client';
 * import { register } from 'prom-client';
 *
 * observeLocks();
 * server.on('request', async (_, response) => response.end(await register.metrics()));
 */
export function observeLocks(options: PromClientOptions = {}): () => void {
  checkOptions(options, OPTIONS);
  const { registers = [register] } = options;
  const names: string[] = [];
  const settings = <Label extends string>(name: string, help: string, ...labelNames: Label[]) => {
    names.push(`etcd_lock_${name}`);
    return { name: `etcd_lock_${name}`, help, labelNames, registers };
  };
  const waiting = new Gauge(settings('waiting_requests', 'Requests that wait for a lock.', 'lock'));
  const holding = new Gauge(settings('holding_requests', 'Requests that hold a lock.', 'lock'));
  const waits = new Histogram({
    ...settings('wait_duration_seconds', 'Time from a request until it held the lock.', 'lock'),
    buckets: [...DURATIONS],
  });
  const holds = new Histogram({
    ...settings('hold_duration_seconds', 'Time from the start of a hold to its loss or release.', 'lock'),
    buckets: [...DURATIONS],
  });
  const requeues = new Counter(settings('requeues_total', 'Entries lost while waiting.', 'lock'));
  const requests = new Counter(settings('requests_total', 'Requests that have ended, by outcome.', 'lock', 'outcome'));
  const renewals = new Histogram({
    ...settings('renewal_duration_seconds', 'Time until a renewal was answered or failed.', 'member', 'result'),
    buckets: [...LATENCIES],
  });
  const end = count(
    {
      seen: (lock) => {
        requeues.inc({ lock }, 0);
        for (const outcome of FAILED) requests.inc({ lock, outcome }, 0);
      },
      waiting: (change, lock) => waiting.inc({ lock }, change),
      holding: (change, lock) => holding.inc({ lock }, change),
      waited: (seconds, lock) => waits.observe({ lock }, seconds),
      held: (seconds, lock) => holds.observe({ lock }, seconds),
      requeued: (lock) => requeues.inc({ lock }),
      ended: (outcome, lock) => requests.inc({ lock, outcome }),
      renewed: ({ latency, member = 'unknown', error }) =>
        renewals.observe({ member, result: error === undefined ? 'renewed' : 'failed' }, latency),
    },
    options,
  );
  return () => {
    end();
    for (const registry of registers) for (const name of names) registry.removeSingleMetric(name);
  };
}
