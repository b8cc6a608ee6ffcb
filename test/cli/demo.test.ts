// How the demo begins and how it is interrupted. Whole demos are in long/.

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ignore } from '../../src/base/cancellation.ts';
import { startCli } from '../support/cli.ts';
import { closedEndpoint } from '../support/clients.ts';
import { childrenOf, untilGone } from '../support/processes.ts';
import type { RunningScript } from '../support/script.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { startOnTerminal } from '../support/terminal.ts';
import { until } from '../support/until.ts';

interface Demo extends RunningScript {
  /** Waits until stdout matches; returns it. */
  readonly shows: (text: RegExp) => Promise<string>;
}

/** Starts `demo`, which is killed after the test. */
function startDemo(args: readonly string[] = [], env: Record<string, string> = {}): Demo {
  const running = startCli(['demo', ...args], env);
  onTestFinished(async () => {
    if (running.process.kill('SIGKILL')) await once(running.process, 'exit');
  });
  let shown = '';
  running.process.stdout.on('data', (chunk) => {
    shown += chunk;
  });
  return {
    ...running,
    shows: (text) =>
      until(
        () => shown,
        (all) => text.test(all),
      ),
  };
}

test.each([
  [['--api', 'v4'], /^etcd-v2-lock: api must be .*, got "v4"\n$/],
  [['--api', 'both'], /^etcd-v2-lock: this command does not support --api both/],
  [['--endpoints', 'nowhere'], /^etcd-v2-lock: endpoint must be .*, got "nowhere"\n$/],
  [['--crush'], /^etcd-v2-lock: unknown option '--crush'\n/],
])('%j is bad usage, and nothing is started', async (args, message) => {
  const { code, stdout, stderr } = await startDemo(args).result;
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toMatch(message);
});

test('an etcd that cannot be reached is reported on one line', async () => {
  const endpoint = await closedEndpoint();
  const { code, stdout, stderr } = await startDemo(['--endpoints', endpoint]).result;
  expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
  expect(stderr).toMatch(/^etcd-v2-lock: http:.*ECONNREFUSED.*\n$/);
  expect(stderr).toContain(endpoint);
});

test('without python-etcd, all contenders are Node.js programs', async () => {
  const modules = temporaryDirectory();
  writeFileSync(join(modules, 'etcd.py'), 'raise ImportError("not installed")\n');
  const demo = startDemo([], { PYTHONPATH: modules });
  const shown = await demo.shows(/node-4 +holds the lock/);
  expect(shown).toContain('python-etcd was not found');
  expect(shown).not.toMatch(/python-etcd +holds/);
  demo.process.kill('SIGTERM');
  const { code, stderr } = await demo.result;
  expect({ code, stderr }).toEqual({ code: 143, stderr: '' });
});

test('^C ends the demo and all its processes', async () => {
  const command = `echo "pid $$"; exec '${process.execPath}' dist/cli/main.js demo`;
  const terminal = startOnTerminal(['sh', '-c', command], { ETCD_ENDPOINTS: '', NO_COLOR: '1' });
  const [, pid] = /^pid (\d+)/.exec(await terminal.shows(/node-2 +holds the lock/)) ?? [];
  const children = childrenOf(Number(pid));
  expect(children).toHaveLength(4);
  terminal.type('\u0003');
  expect(await terminal.ended).toBe(130);
  await Promise.all(children.map(untilGone));
  expect(terminal.shown()).not.toContain('etcd-v2-lock:');
});

test.each(['SIGHUP', 'SIGKILL'] as const)('%s leaves no process of the demo', async (signal) => {
  const demo = startDemo(['--crash']);
  await demo.shows(/node-1 +holds the lock/);
  const children = childrenOf(demo.process.pid ?? 0);
  expect(children).toHaveLength(3);
  demo.process.kill(signal);
  await Promise.all(children.map(untilGone));
  await demo.result;
});

test('a reader of the output that goes away ends the demo and all its processes', async () => {
  const demo = startDemo();
  await demo.shows(/node-1 +holds the lock/);
  const children = childrenOf(demo.process.pid ?? 0);
  demo.result.catch(ignore); // the rest of the output is not read
  demo.process.stdout.destroy();
  await Promise.all(children.map(untilGone));
  expect(demo.process.exitCode ?? (await once(demo.process, 'exit'))[0]).toBe(0);
});

test('a contender that dies is reported, and ends the demo', async () => {
  const demo = startDemo();
  await demo.shows(/node-1 +holds the lock/);
  const [first = 0, ...others] = childrenOf(demo.process.pid ?? 0);
  process.kill(first, 'SIGKILL');
  const { code, stderr } = await demo.result;
  expect(code).toBe(125);
  expect(stderr).toMatch(/^etcd-v2-lock: the process of \S+ ended with signal SIGKILL\n$/);
  await Promise.all(others.map(untilGone));
});
