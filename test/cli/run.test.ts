import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findPython } from '../../scripts/find.mjs';
import { runCli } from '../support/cli.ts';
import { freshName, queueOn } from '../support/locks.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { until } from '../support/until.ts';
import { onEtcd, run, startRun } from './running.ts';
import { witness } from './witness.ts';

const PYTHON = findPython() ?? 'python3';

describe('a command under a lock', () => {
  test('runs while the lock is held, and is told of it', async () => {
    const name = freshName();
    const look = `console.log(JSON.stringify([Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('ETCD_LOCK_'))),
      (await (await fetch(process.argv[1] + '/v2/keys' + process.env.ETCD_LOCK_KEY)).json()).node.value]))`;
    const { code, stdout, stderr } = await run(
      name,
      '--',
      process.execPath,
      '--input-type=module',
      '-e',
      look,
      onEtcd()['ETCD_ENDPOINTS'] ?? '',
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [told, value] = JSON.parse(stdout);
    expect(told).toEqual({
      ETCD_LOCK_NAME: name,
      ETCD_LOCK_KEY: expect.stringMatching(`^/_locks/${name}/\\d{20}$`),
      ETCD_LOCK_UUID: value,
      ETCD_LOCK_TOKEN: String(BigInt(told.ETCD_LOCK_KEY.slice(-20))),
    });
    expect(await queueOn(name)).toEqual([]);
  });

  test.each([0, 1, 7, 124, 255])('ends with its exit code %i', async (code) => {
    expect(await run(freshName(), '--', 'sh', '-c', `exit ${code}`)).toMatchObject({ code, stderr: '' });
  });

  test.each([
    ['KILL', 137],
    ['SEGV', 139],
    ['TERM', 143],
  ])('killed by SIG%s ends with %i', async (signal, code) => {
    expect(await run(freshName(), '--', 'sh', '-c', `kill -${signal} $$`)).toMatchObject({ code, stderr: '' });
  });

  test.each([
    ['RTMIN', 34],
    ['RTMIN+3', 37],
    ['RTMAX', 64],
    ['32', 32],
  ])('killed by the signal %s, which Node has no name for, ends with 128 + %i', async (signal, number) => {
    const killed = await run(freshName(), '--', 'bash', '-c', `kill -s ${signal} $$`);
    expect(killed).toMatchObject({ code: 128 + number, signal: null, stderr: '' });
  });

  test('gets its arguments as they are, with no shell in between', async () => {
    const args = ['a b', '$HOME', '*', '--ttl', '', "it's", '-x', '--', '\\'];
    const { stdout } = await run(
      freshName(),
      '--',
      PYTHON,
      '-c',
      'import json, sys; print(json.dumps(sys.argv[1:]))',
      ...args,
    );
    expect(JSON.parse(stdout)).toEqual(args);
  });

  test('has our stdin', async () => {
    const cat = ['dist/cli/main.js', 'run', freshName(), '--', 'cat'];
    const { stdout, status } = spawnSync(process.execPath, cat, {
      env: { ...process.env, ...onEtcd() },
      input: 'typed',
    });
    expect({ status, stdout: String(stdout) }).toEqual({ status: 0, stdout: 'typed' });
  });

  test('keeps its place as long as it runs, also for longer than the TTL', async () => {
    const name = freshName();
    const job = witness(0);
    const { process: child, result } = startRun(name, '--ttl', '3', '--', ...job.command);
    await job.begun();
    const [first] = await queueOn(name);
    const expiry = Date.parse(first?.expiration ?? '');
    await until(Date.now, (time) => time > expiry + 1000);
    expect(await queueOn(name)).toEqual([expect.objectContaining({ key: first?.key, value: first?.value })]);
    child.kill('SIGTERM');
    expect(await result).toMatchObject({ code: 0 });
    expect(await queueOn(name)).toEqual([]);
  });

  test('shares the lock with others that share it, under the name it was given', async () => {
    const name = freshName();
    const first = witness(0);
    startRun(name, '--shared', '--identity', 'me', '--', ...first.command);
    await first.begun();
    const [entry] = await queueOn(name);
    expect(entry?.value).toMatch(/^shared:id:me:/);
    expect(await run(name, '--shared', '--if-available', '--', 'true')).toMatchObject({ code: 0 });
    expect(await run(name, '--if-available', '--', 'true')).toMatchObject({ code: 1 });
  });
});

describe('without the lock nothing runs', () => {
  test('where it is taken and not to be waited for: 1, in silence', async () => {
    const name = freshName();
    const job = witness(0);
    startRun(name, '--', ...job.command);
    await job.begun();
    expect(await run(name, '--if-available', '--', 'echo', 'ran')).toEqual({
      code: 1,
      signal: null,
      stdout: '',
      stderr: '',
    });
    expect(await run(name, '--if-available', '-E', '33', '--', 'echo', 'ran')).toMatchObject({ code: 33, stdout: '' });
  });

  test('where the timeout passes: 124, and who holds it', async () => {
    const name = freshName();
    const job = witness(0);
    startRun(name, '--', ...job.command);
    await job.begun();
    const [entry] = await queueOn(name);
    const { code, stdout, stderr } = await run(name, '--timeout', '0.5', '--', 'echo', 'ran');
    expect({ code, stdout }).toEqual({ code: 124, stdout: '' });
    expect(stderr).toContain(`held by ${entry?.value}`);
    expect(await queueOn(name)).toHaveLength(1);
    expect(await run(name, '--timeout', '0.1', '-E', '33', '--', 'echo', 'ran')).toMatchObject({
      code: 33,
      stdout: '',
    });
  });

  test('where etcd cannot be reached: 69', async () => {
    const args = ['run', freshName(), '--endpoints', 'http://127.0.0.1:1', '--', 'echo', 'ran'];
    expect(await runCli(args)).toMatchObject({ code: 69, stdout: '', stderr: expect.stringContaining('ECONNREFUSED') });
  });

  test.each([
    ['no name', [], /missing required argument 'name'/],
    ['no command', ['x'], /missing required argument 'command'/],
    ['options of the command and no --', ['x', 'ls', '-l'], /unknown option '-l'.*<name> -- <command>/s],
    ['a name that etcd would change', ['a//b', '--', 'true'], /lock name must have no empty.*"a\/\/b"/],
    ['a TTL that is no number', ['x', '--ttl', 'soon', '--', 'true'], /It must be a number, got "soon"/],
    ['a TTL that is too small', ['x', '--ttl', '0', '--', 'true'], /ttl must be an integer from 1 .* got 0/],
    ['a timeout below 0', ['x', '--timeout', '-1', '--', 'true'], /timeout must be .* got -1/],
    ['two minds about waiting', ['x', '--if-available', '--timeout', '5', '--', 'true'], /cannot be used with/],
    [
      'an exit code that is none',
      ['x', '-E', '256', '--', 'true'],
      /exit code must be an integer from 0 to 255, got 256/,
    ],
  ])('with %s: 64, and what is wrong', async (_, args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toMatch(message);
  });

  test('where there is no such command: 127, before anyone queues up', async () => {
    const name = freshName();
    const { code, stderr } = await run(name, '--', 'no-such-command');
    expect({ code, stderr }).toEqual({ code: 127, stderr: 'etcd-v2-lock: "no-such-command" was not found\n' });
    // Its directory would stay.
    expect(await queueOn(name)).toEqual([]);
  });

  test('where the command is a directory: 126', async () => {
    const directory = temporaryDirectory();
    const { code, stderr } = await run(freshName(), '--', directory);
    expect({ code, stderr }).toEqual({
      code: 126,
      stderr: `etcd-v2-lock: ${directory} cannot be run: it is no file\n`,
    });
  });

  test('where the command is no program: 126', async () => {
    const file = join(temporaryDirectory(), 'notes.txt');
    writeFileSync(file, 'hello');
    const { code, stderr } = await run(freshName(), '--', file);
    expect({ code, stderr }).toEqual({
      code: 126,
      stderr: `etcd-v2-lock: ${file} cannot be run: it is not executable\n`,
    });
  });
});
