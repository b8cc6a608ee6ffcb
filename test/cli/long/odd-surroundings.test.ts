// A working directory that is gone, a full disk, and files that have no end.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { runCli } from '../../support/cli.ts';
import { freshName, queueOn } from '../../support/locks.ts';
import { enqueue, useLockName } from '../../support/queues.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { onEtcd } from '../running.ts';

const CLI = [process.execPath, resolve('dist/cli/main.js')];

/** Runs a shell script with the CLI as its arguments. */
async function inShell(script: string, ...args: readonly string[]) {
  const child = spawn('sh', ['-c', script, 'sh', ...CLI, ...args], {
    env: { ...process.env, ...onEtcd() },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [[code], stdout, stderr] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}

const FULL = {
  code: 125,
  stdout: '',
  stderr: 'etcd-v2-lock: cannot write to stdout: ENOSPC: no space left on device\n',
};

test.each(['run', 'elect'])('%s works in a deleted directory, and the command runs there too', async (subcommand) => {
  const name = freshName();
  const directory = mkdtempSync(join(temporaryDirectory(), 'gone-'));
  const script = `cd ${directory} && rmdir ${directory} && exec "$@"`;
  expect(await inShell(script, subcommand, name, '--', 'readlink', '/proc/self/cwd')).toEqual({
    code: 0,
    stdout: `${directory} (deleted)\n`,
    stderr: '',
  });
  expect(await queueOn(name)).toEqual([]);
});

test.each([
  'ls --json',
  'inspect nosuch --json',
  'prune --json',
  'doctor',
  'serve --port 0',
  'bridge --listen 127.0.0.1:0',
  'completion bash',
  'help',
  'run --help',
  '--version',
])('"%s" on a full disk ends with 125 and says why', async (line) => {
  expect(await inShell('exec "$@" > /dev/full', ...line.split(' '))).toEqual(FULL);
});

test('"watch" on a full disk ends with 125 at the first entry', async () => {
  const name = useLockName();
  await enqueue(name, 'holder');
  expect(await inShell('exec "$@" > /dev/full', 'watch', name)).toEqual(FULL);
});

test('an error that nothing handles ends with 125, not with the code for a lock that is taken', async () => {
  const source = `process.stdout.write = () => { setImmediate(() => { throw new Error("odd"); }); return true; };`;
  const options = `--import=data:text/javascript,${encodeURIComponent(source)}`;
  const { code, stderr } = await inShell(`NODE_OPTIONS='${options}' exec "$@"`, 'ls', '--json');
  expect({ code, stderr }).toEqual({ code: 125, stderr: expect.stringMatching(/^etcd-v2-lock: Error: odd\n/) });
});

test.each([
  ['--cacert', 'ls --cacert /dev/zero'],
  ['--cert', 'ls --cert /dev/zero --key /dev/zero'],
  ['--password-file', 'ls --user a --password-file /dev/zero'],
  ['--listen-cert', 'bridge --listen-cert /dev/zero --listen-key /dev/zero'],
])('a file of %s without an end is refused', async (_, line) => {
  expect(await runCli(line.split(' '))).toMatchObject({
    code: 64,
    stdout: '',
    stderr: `etcd-v2-lock: cannot read "/dev/zero": it has more than 1 MiB\n`,
  });
});

test('a file may be a pipe', async () => {
  const { code, stderr } = await inShell('printf "%s" "no certificate" | "$@"', 'ls', '--cacert', '/dev/stdin');
  expect({ code, stderr }).toEqual({
    code: 64,
    stderr: 'etcd-v2-lock: /dev/stdin is not a PEM file: it has no "-----BEGIN …" line\n',
  });
});

test.each(['v2', 'v3'])('prune --api %s fails if nothing listens', async (api) => {
  const { code, stderr } = await runCli(['prune', '--api', api, '--endpoints', 'http://127.0.0.1:1']);
  expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining('127.0.0.1:1') });
});
