import { EtcdException } from '../../errors.ts';
import type { Served } from '../front/front.ts';
import type { Page } from '../front/info.ts';
import type { LeaseCounts } from './lease-counts.ts';

/** Upper bounds of the buckets for the duration of a request, in seconds. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Values that are read when the page is requested. */
export interface Gauges {
  readonly openPolls: number;
  readonly connections: number;
  readonly isReachable: boolean;
  readonly leases: LeaseCounts;
}

/** Histogram of the durations of one kind of request. */
interface Durations {
  readonly buckets: number[];
  sum: number;
  count: number;
}

/** Counts and times the requests that a bridge serves, for Prometheus. */
export class Metrics {
  /** Numbers of requests, by labels. */
  readonly #requests = new Map<string, number>();
  readonly #errors = new Map<string, number>();
  /** Durations, by call. */
  readonly #durations = new Map<string, Durations>();
  readonly #gauges: () => Promise<Gauges>;

  constructor(gauges: () => Promise<Gauges>) {
    this.#gauges = gauges;
  }

  /** The page `/metrics`. */
  readonly page: Page = {
    methods: ['GET', 'HEAD'],
    reply: async () => ({
      status: 200,
      headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
      body: this.#text(await this.#gauges()),
    }),
  };

  count({ call, status, error, seconds }: Served): void {
    add(this.#requests, `call="${call ?? 'page'}",status="${status}"`);
    if (error !== undefined) add(this.#errors, `code="${codeOf(error)}"`);
    // Polls are not timed: they take as long as the lock is held.
    if (!call || call === 'watch') return;
    const durations = this.#durations.get(call) ?? { buckets: BOUNDS.map(() => 0), sum: 0, count: 0 };
    this.#durations.set(call, durations);
    durations.sum += seconds;
    durations.count += 1;
    BOUNDS.forEach((bound, i) => {
      if (seconds <= bound) durations.buckets[i] = (durations.buckets[i] ?? 0) + 1;
    });
  }

  #text(gauges: Gauges): string {
    return [
      ...family('requests_total', 'counter', 'Requests answered, or ended by their client.', this.#requests),
      ...family('errors_total', 'counter', "Requests that failed, by the code of etcd's error.", this.#errors),
      ...heading('request_duration_seconds', 'histogram', 'Time to answer a request; polls are not counted.'),
      ...[...this.#durations].flatMap(([call, durations]) => histogram(call, durations)),
      ...family('open_polls', 'gauge', 'Open long polls.', gauges.openPolls),
      ...family('connections', 'gauge', 'Connections of clients.', gauges.connections),
      ...family(
        'etcd_reachable',
        'gauge',
        '1 if etcd has answered the last request or health check.',
        Number(gauges.isReachable),
      ),
      ...family('leases_granted_total', 'counter', 'Leases created for entries.', gauges.leases.granted),
      ...family('leases_ended_total', 'counter', 'Leases that the bridge has begun to revoke.', gauges.leases.ended),
      '',
    ].join('\n');
  }
}

const codeOf = (error: unknown): string => (error instanceof EtcdException && `${error.errorCode ?? ''}`) || 'none';

const add = (counts: Map<string, number>, labels: string): void => {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
};

const heading = (name: string, type: string, help: string): string[] => [
  `# HELP ${nameOf(name)} ${help}`,
  `# TYPE ${nameOf(name)} ${type}`,
];

const family = (name: string, type: string, help: string, values: number | ReadonlyMap<string, number>): string[] => [
  ...heading(name, type, help),
  ...(typeof values === 'number'
    ? [`${nameOf(name)} ${values}`]
    : [...values].map(([labels, value]) => `${nameOf(name)}{${labels}} ${value}`)),
];

function histogram(call: string, { buckets, sum, count }: Durations): string[] {
  const name = nameOf('request_duration_seconds');
  return [
    ...BOUNDS.map((bound, i) => `${name}_bucket{call="${call}",le="${bound}"} ${buckets[i]}`),
    `${name}_bucket{call="${call}",le="+Inf"} ${count}`,
    `${name}_sum{call="${call}"} ${sum}`,
    `${name}_count{call="${call}"} ${count}`,
  ];
}

const nameOf = (name: string): string => `etcd_v2_lock_bridge_${name}`;
