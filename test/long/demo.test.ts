import { expect, test } from 'vitest';
import { closedEndpoint } from '../support/clients.ts';
import { startNode } from '../support/script.ts';

const demo = (env: Record<string, string>) => startNode(['scripts/demo/main.mjs'], env).result;

test('the demo shows a bar per contender, in the order of arrival, and ends with what to do next', async () => {
  const { code, stdout, stderr } = await demo({ ETCD_ENDPOINTS: '' });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const bars = [...stdout.matchAll(/^(\S+) +\|(.{60})\|$/gm)].map(([, who, bar = '']) => ({ who, bar }));
  expect(bars.map(({ who }) => who)).toEqual(['node-1', 'python-etcd', 'node-3']);
  for (const { bar } of bars) expect(bar).toMatch(/^ *·*█+ *$/);
  const starts = bars.map(({ bar }) => bar.indexOf('█'));
  expect(starts).toEqual([...starts].sort((a, b) => a - b));
  expect(stdout).toContain('held in the order of arrival: yes\nnever two holders at once: yes\n');
  expect(stdout.split('\n\n').at(-1)).toMatch(/^next: /);
});

test('the demo on an endpoint that is dead prints one line', async () => {
  const endpoint = await closedEndpoint();
  const { code, stdout, stderr } = await demo({ ETCD_ENDPOINTS: endpoint });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/^cannot use http:.*ECONNREFUSED.*\n$/);
  expect(stderr).toContain(endpoint);
});
