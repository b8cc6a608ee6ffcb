// The rules for Prometheus in examples/prometheus/, by Prometheus' own tool.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { read } from '../support/readme.ts';

const RULES = 'examples/prometheus/etcd-v2-lock.rules.yml';
const execute = promisify(execFile);

const { groups } = parse(read(RULES)) as { groups: { rules: { alert: string; expr: string }[] }[] };
const rules = groups.flatMap((group) => group.rules);

test('each alert begins when it should, and a healthy system has none', async () => {
  expect((await execute('promtool', ['check', 'rules', RULES])).stdout).toContain(
    `SUCCESS: ${rules.length} rules found`,
  );
  expect((await execute('promtool', ['test', 'rules', 'test/support/alerts.yml'])).stdout).toContain('SUCCESS');
});

test('each alert is tested, both ways', () => {
  const { tests } = parse(read('test/support/alerts.yml')) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[] }[];
  };
  const tested = tests.flatMap((one) => one.alert_rule_test);
  const names = (wanted: boolean) =>
    [...new Set(tested.filter((one) => !!one.exp_alerts === wanted).map((one) => one.alertname))].sort();
  const all = rules.map(({ alert }) => alert).sort();
  expect([names(true), names(false)]).toEqual([all, all]);
});

test.each(rules)(
  '$alert watches metrics that the docs list, and docs/operating.md says what to do',
  ({ alert, expr }) => {
    const listed = [
      ...read('docs/metrics.md').matchAll(/`(etcd_lock_\w+)`/g),
      ...[...read('docs/bridge.md').matchAll(/`([a-z_]+)(?=\{|`)/g)].map(([, name]) => [
        '',
        `etcd_v2_lock_bridge_${name}`,
      ]),
    ].map(([, name]) => name);
    const used = [...expr.matchAll(/\betcd_\w+/g)].map(([name]) => name.replace(/_(?:count|bucket)$/, ''));
    for (const name of used) expect(listed).toContain(name);
    expect(read('docs/operating.md')).toContain(`\`${alert}\``);
  },
);
