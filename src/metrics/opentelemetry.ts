/**
 * Metrics and spans of locks, by `@opentelemetry/api`.
 * @module etcd-v2-lock/opentelemetry
 */

import { type Attributes, metrics } from '@opentelemetry/api';
import type { Renewal } from '../manager/trace.ts';
import { checkOptions, count, DURATIONS, FAILED, LATENCIES, OBSERVE_OPTIONS, type ObserveOptions } from './counts.ts';
import { errorType, SCOPE, traceRequests } from './spans.ts';

export type { ObserveOptions } from './counts.ts';

const NAME = 'etcd_lock.name';

/**
 * Counts, times and traces all requests of this process for locks: those of `request()` and `acquire()` of each `LockManager` that begin
 * from now on. docs/metrics.md lists the metrics and the attributes. Spans always have the name of the lock itself.
 *
 * Call it after you have set up the SDK: a meter belongs to the provider of its time.
 * @returns a function that ends this, and the spans that are open
 * @throws {TypeError} if an option does not exist or is invalid
 * @example
 * import { observeLocks } from 'etcd-v2-lock/opentelemetry';
 *
 * sdk.start();
 * observeLocks();
 */
export function observeLocks(options: ObserveOptions = {}): () => void {
  checkOptions(options, OBSERVE_OPTIONS);
  const meter = metrics.getMeter(SCOPE);
  const histogram = (name: string, description: string, boundaries: readonly number[]) =>
    meter.createHistogram(name, { description, unit: 's', advice: { explicitBucketBoundaries: [...boundaries] } });
  const requests = { unit: '{request}' };
  const waiting = meter.createUpDownCounter('etcd_lock.waiting_requests', {
    ...requests,
    description: 'Requests that wait for a lock.',
  });
  const holding = meter.createUpDownCounter('etcd_lock.holding_requests', {
    ...requests,
    description: 'Requests that hold a lock.',
  });
  const waits = histogram('etcd_lock.wait.duration', 'Time from a request until it held the lock.', DURATIONS);
  const holds = histogram(
    'etcd_lock.hold.duration',
    'Time from the start of a hold to its loss or release.',
    DURATIONS,
  );
  const requeues = meter.createCounter('etcd_lock.requeues', {
    unit: '{entry}',
    description: 'Entries lost while waiting.',
  });
  const ended = meter.createCounter('etcd_lock.requests', {
    ...requests,
    description: 'Requests that have ended, by outcome.',
  });
  const renewals = histogram('etcd_lock.renewal.duration', 'Time until a renewal was answered or failed.', LATENCIES);
  const endCounting = count(
    {
      seen: (lock) => {
        requeues.add(0, { [NAME]: lock });
        for (const outcome of FAILED) ended.add(0, { [NAME]: lock, 'etcd_lock.outcome': outcome });
      },
      waiting: (change, lock) => waiting.add(change, { [NAME]: lock }),
      holding: (change, lock) => holding.add(change, { [NAME]: lock }),
      waited: (seconds, lock) => waits.record(seconds, { [NAME]: lock }),
      held: (seconds, lock) => holds.record(seconds, { [NAME]: lock }),
      requeued: (lock) => requeues.add(1, { [NAME]: lock }),
      ended: (outcome, lock) => ended.add(1, { [NAME]: lock, 'etcd_lock.outcome': outcome }),
      renewed: (renewal) => renewals.record(renewal.latency, attributesOf(renewal)),
    },
    options,
  );
  const endTracing = traceRequests();
  return () => {
    endCounting();
    endTracing();
  };
}

/** Attributes as in OpenTelemetry's semantic conventions. */
function attributesOf({ member, error }: Renewal): Attributes {
  const server = member === undefined ? {} : serverOf(new URL(member));
  return error === undefined ? server : { ...server, 'error.type': errorType(error) };
}

const serverOf = ({ hostname, port, protocol }: URL): Attributes => ({
  'server.address': hostname,
  'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
});
