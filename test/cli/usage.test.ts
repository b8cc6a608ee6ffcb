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
])('%j shows help and exits with 0', async (args, usage) => {
  const { code, stdout, stderr } = await runCli(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(usage);
});
