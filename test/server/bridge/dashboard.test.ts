// The dashboard for Grafana in examples/grafana, without Grafana: its queries are PromQL, about what bridges and clients serve.
import { readFileSync } from 'node:fs';
import { parser } from '@prometheus-io/lezer-promql';
import { expect, test } from 'vitest';
import { freshName } from '../../support/locks.ts';
import { page } from '../../support/readme.ts';
import { metricsOf } from './pages.ts';
import { useBridge, useKeys } from './use-bridge.ts';

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
}

const BRIDGE = 'etcd_v2_lock_bridge_';
const { panels } = JSON.parse(
  readFileSync(new URL('../../../examples/grafana/dashboard.json', import.meta.url), 'utf8'),
) as { panels: readonly Panel[] };

/** The queries as Grafana sends them. */
const queries = panels.flatMap(({ targets = [] }) =>
  targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '')),
);

/** The words of a kind in a query, such as the names of metrics. */
function wordsIn(query: string, kind: string): string[] {
  const words: string[] = [];
  parser.parse(query).iterate({
    enter: ({ name, type, from, to }) => {
      if (type.isError) expect.unreachable(`no PromQL: ${query}`);
      if (name === kind) words.push(query.slice(from, to));
    },
  });
  return words;
}

const metricsIn = (query: string): string[] => wordsIn(query, 'Identifier');
/** Labels that Prometheus does not add by itself. */
const labelsIn = (query: string): string[] => wordsIn(query, 'LabelName').filter((label) => label !== 'instance');

const ofBridges = queries.filter((query) => query.includes(BRIDGE));
const ofClients = queries.filter((query) => !query.includes(BRIDGE));

test('each query about bridges has a metric that a bridge serves, with its labels', async () => {
  const bridge = await useBridge({ metrics: true });
  const keys = useKeys(bridge);
  const path = `/_locks/${freshName()}`;
  const { node } = await keys.createInOrder(path, 'x', { ttl: 60 });
  await keys.delete(node.key);
  await expect(keys.get(node.key)).rejects.toThrow();
  const served = new Map<string, Set<string>>();
  for (const metric of Object.keys(await metricsOf(bridge))) {
    const [name = '', labels = ''] = metric.split('{');
    served.set(BRIDGE + name, new Set([...labels.matchAll(/(\w+)=/g)].map(([, label = '']) => label)));
  }
  const asked = new Set(ofBridges.flatMap(metricsIn));
  expect(asked.size).toBe(8);
  for (const query of ofBridges) {
    const [metric = '', ...others] = metricsIn(query);
    expect(others).toEqual([]);
    expect([...served.keys()]).toContain(metric);
    for (const label of labelsIn(query)) expect(served.get(metric), query).toContain(label);
  }
});

test('each query about clients has a metric of docs/metrics.md', () => {
  const { text } = page('docs/metrics.md');
  expect(ofClients.length).toBeGreaterThan(5);
  for (const query of ofClients)
    for (const metric of metricsIn(query)) expect(text).toContain(`| \`${metric.replace(/_bucket$/, '')}\` |`);
});

test('no two panels have the same number, or cover each other', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const covered = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
  );
  expect(new Set(covered).size).toBe(covered.length);
  for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
});
