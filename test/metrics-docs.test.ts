// Runs the recipes in docs/metrics.md with the real libraries, and checks the names and tables in it.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { EtcdLockLost, LockManager, type RequestTrace } from '../src/index.ts';
import { freshName, raw, rejection, untilQueued, useClient } from './support/locks.ts';
import { between, page, quotedIn, rowsOf } from './support/readme.ts';
import { runScript } from './support/script.ts';
import { until } from './support/until.ts';

const recipes = page('docs/metrics.md').blocks;

const tableOf = (head: string): string[] =>
  rowsOf(`${between('docs/metrics.md', `| ${head} |`, '\n\n')}\n`).flatMap(([cell]) => quotedIn(cell));

const OUTCOMES = ['held', 'joined', 'unavailable', 'timeout', 'aborted', 'lost', 'error'] as const;
type Outcome = (typeof OUTCOMES)[number];

/** Returns the recipe with this file name, followed by one request for each outcome: each for the lock PREFIX-OUTCOME. */
const withRequests = (file: string, prefix: string, report: string): string => `
${recipes.find(({ code }) => code.startsWith(`// ${file}\n`))?.code}
import { setTimeout as sleep } from 'node:timers/promises';
import { LockManager } from 'etcd-v2-lock';
import { V2Client } from './dist/v2/client.js';
const client = new V2Client({ endpoints: '${inject('etcd')}' });
const nowhere = new V2Client({ endpoints: 'http://127.0.0.1:1' });
const locks = new LockManager(client, { ttl: 3 });
const requestTaken = async (name, options) => {
  const { node } = await client.createInOrder('/_locks/' + name, 'holder', { ttl: 60 });
  await locks.request(name, options, () => {}).finally(() => client.delete(node.key));
};
const requests = {
  held: (name) => locks.request(name, () => {}),
  joined: (name) => locks.request(name, () => locks.request(name, { reentrant: true }, () => {})),
  unavailable: (name) => requestTaken(name, { ifAvailable: true }),
  timeout: (name) => requestTaken(name, { timeout: 1 }),
  aborted: (name) => requestTaken(name, { signal: AbortSignal.timeout(1000) }),
  lost: (name) =>
    locks.request(name, async ({ key, signal }) => {
      await client.delete(key);
      await sleep(60_000, undefined, { signal });
    }),
  error: (name) => new LockManager(nowhere).request(name, { ifAvailable: true }, () => {}),
};
for (const [outcome, request] of Object.entries(requests)) await request('${prefix}-' + outcome).catch(() => {});
await client.close();
await nowhere.close();
console.log(JSON.stringify(${report}));
`;

async function reportOf<T>(script: string): Promise<T> {
  const { code, stdout, stderr } = await runScript(script);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as T;
}

interface Metric {
  readonly name: string;
  readonly values: readonly { readonly value: number; readonly labels: Readonly<Record<string, string>> }[];
}

describe('with the recipe for prom-client', () => {
  const prefix = freshName();
  let metrics: Metric[];
  beforeAll(async () => {
    const script = withRequests('lock-metrics.js', prefix, 'await register.getMetricsAsJSON()');
    metrics = await reportOf(`${script}import { register } from 'prom-client';`);
  });
  const valuesOf = (name: string) => metrics.find((metric) => metric.name === name)?.values ?? [];

  test.each(OUTCOMES)('a request with the outcome %s is counted once, and the gauges return to zero', (outcome) => {
    const lock = `${prefix}-${outcome}`;
    const of = (name: string) => valuesOf(name).filter(({ labels }) => labels['lock'] === lock);
    expect(of('etcd_lock_requests_total').find(({ labels }) => labels['outcome'] === outcome)?.value).toBe(1);
    expect(of('etcd_lock_waiting_requests')).toEqual([{ value: 0, labels: { lock } }]);
    for (const { value } of of('etcd_lock_holding_requests')) expect(value).toBe(0);
  });

  test('renewals are measured by member and result', () => {
    const renewals = valuesOf('etcd_lock_renewal_duration_seconds');
    const count = renewals.find(({ labels }) => labels['result'] === 'failed' && !labels['le']);
    expect(count?.labels).toEqual({ member: 'unknown', result: 'failed' });
  });
});

test('the recipe for locks with many names counts them in groups', async () => {
  const prefix = freshName();
  const script = withRequests('grouped-metrics.js', `${prefix}/one`, 'await register.getMetricsAsJSON()');
  const metrics: Metric[] = await reportOf(`${script}import { register } from 'prom-client';`);
  const ended = metrics.find(({ name }) => name === 'etcd_lock_requests_total')?.values ?? [];
  expect(ended.map(({ labels }) => labels['lock'])).toEqual(ended.map(() => prefix));
  expect(ended.reduce((sum, { value }) => sum + value, 0)).toBe(OUTCOMES.length + 1);
});

interface FinishedSpan {
  readonly attributes: Readonly<Record<string, string>>;
  readonly status: number;
  readonly events: readonly string[];
}

describe('with the recipe for OpenTelemetry', () => {
  const prefix = freshName();
  let spans: FinishedSpan[];
  let started: number;
  beforeAll(async () => {
    const provider = `
      import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
      import { trace as api } from '@opentelemetry/api';
      let started = 0;
      const exporter = new InMemorySpanExporter();
      const counting = { onStart: () => { started += 1; }, onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} };
      const spanProcessors = [new SimpleSpanProcessor(exporter), counting];
      api.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
      const finished = () => exporter.getFinishedSpans().map(({ attributes, status, events }) =>
        ({ attributes, status: status.code, events: events.map(({ name }) => name) }));
    `;
    const script = withRequests('lock-tracing.js', prefix, '{ started, spans: finished() }');
    ({ started, spans } = await reportOf<{ started: number; spans: FinishedSpan[] }>(provider + script));
  });

  const FAILED: readonly Outcome[] = ['timeout', 'lost', 'error'];
  const [UNSET, ERROR] = [0, 2];

  test.each(OUTCOMES)('a request with the outcome %s has one span, which has ended', (outcome) => {
    const lock = `${prefix}-${outcome}`;
    const own = spans.filter(({ attributes }) => attributes['etcd_lock.name'] === lock);
    const [span, ...others] = own.filter(({ attributes }) => attributes['etcd_lock.outcome'] === outcome);
    expect(others).toEqual([]);
    expect(span?.status).toBe(FAILED.includes(outcome) ? ERROR : UNSET);
    expect(span?.events.includes('held')).toBe(outcome === 'held' || outcome === 'lost');
  });

  test('no span stays open', () => {
    expect(spans).toHaveLength(started);
    expect(started).toBe(OUTCOMES.length + 1); // one more for the hold that a request joined
  });
});

test('the recipes are all the code in docs/metrics.md, and the tables list all outcomes', () => {
  expect(recipes.map(({ language, code }) => [language, code.split('\n', 1)[0]])).toEqual([
    ['js', '// lock-metrics.js'],
    ['js', '// grouped-metrics.js'],
    ['js', '// lock-tracing.js'],
    ['ts', '// lock-log.ts'], // compiled and run with the other snippets in TypeScript
  ]);
  expect(tableOf('outcome')).toEqual(OUTCOMES);
});

test('holds, a loss and a lost entry publish messages on the listed channels, with exactly the listed fields', async () => {
  const [channels, fields] = [tableOf('channel'), tableOf('field')];
  const name = freshName();
  const heard = new Set<string>();
  const seen = new Set<string>();
  for (const channel of channels) {
    const listen = (message: unknown) => {
      if ((message as RequestTrace).name !== name) return;
      heard.add(channel);
      for (const field of Object.keys(message as object)) seen.add(field);
    };
    subscribe(`tracing:etcd-v2-lock:request:${channel}`, listen);
    onTestFinished(() => void unsubscribe(`tracing:etcd-v2-lock:request:${channel}`, listen));
  }
  const client = useClient();
  const locks = new LockManager(client);
  await locks.request(name, () => 'a result');
  const other = await new LockManager(useClient()).acquire(name);
  const waiting = locks.request(name, () => 'a result');
  const [, own] = await untilQueued(name, 2);
  await raw('DELETE', own?.key ?? '');
  await other.release();
  await waiting;
  const lost = locks.request(name, { ttl: 3 }, async ({ key, signal }) => {
    await until(
      () => heard.has('renewed'),
      (isRenewed) => isRenewed,
    );
    await raw('DELETE', key);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  });
  expect(await rejection(lost)).toBeInstanceOf(EtcdLockLost);
  expect([...heard].sort()).toEqual([...channels].sort());
  expect([...seen].sort()).toEqual([...fields].sort());
});
