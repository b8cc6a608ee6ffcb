import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';

test.each([
  [['nosuch'], /^etcd-v2-lock: unknown command 'nosuch'/],
  [['help', 'nosuch'], /^etcd-v2-lock: unknown command 'nosuch'\n$/],
  [['help', 'inspct'], /^etcd-v2-lock: unknown command 'inspct'\n\(Did you mean inspect\?\)\n$/],
  [['help', '--nosuch'], /unknown option '--nosuch'/],
  [['serve', '--port', 'abc'], /It must be a number, got "abc"/],
  [['serve', '--port', '-1'], /port must be an integer/],
])('%j is bad usage, and the message shows the value', async (args, message) => {
  const { code, stdout, stderr } = await runCli(args);
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toMatch(message);
});

test.each([
  [['help'], /^Usage: etcd-v2-lock \[options\]/],
  [['--help'], /^Usage: etcd-v2-lock \[options\]/],
  [['help', 'help'], /^Usage: etcd-v2-lock help \[options\] \[command\]/],
  [['help', 'serve'], /^Usage: etcd-v2-lock serve \[options\]/],
  [['help', 'run'], /^Usage: etcd-v2-lock run \[options\]/],
  [['help', 'connection'], /^Connection and authentication options[\s\S]*--endpoints[\s\S]*--lock-prefix/],
])('%j shows help and exits with 0', async (args, usage) => {
  const { code, stdout, stderr } = await runCli(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(usage);
});

test('`run -h` fits a screen of 80 lines, and names what `help run` explains', async () => {
  const [brief, whole] = await Promise.all([runCli(['run', '-h']), runCli(['help', 'run'])]);
  expect(brief.stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(80);
  const [, named = ''] = /^See "etcd-v2-lock help run" for:\n {2}(.*)\.$/m.exec(brief.stdout) ?? [];
  const sections = [...whole.stdout.matchAll(/^(\S.*):\n- /gm)].map(([, title = '']) => title.toLowerCase());
  expect(sections.length).toBeGreaterThan(5);
  expect(named.split(', ')).toEqual(sections);
});

test.each(['ls', 'bridge'])('`%s -h` refers to the connection options', async (command) => {
  expect((await runCli([command, '-h'])).stdout).toMatch(/"etcd-v2-lock help connection"\.\n$/);
});
