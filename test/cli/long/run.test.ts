import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findPython } from '../../../scripts/find.mjs';
import { runCli } from '../../support/cli.ts';
import { gate } from '../../support/gate.ts';
import { freshName, queueOn, raw, untilQueued, useProxy } from '../../support/locks.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { enqueue } from '../../support/queues.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';
import { onEtcd, run, startRun, startRunOn } from '../running.ts';
import { witness } from '../witness.ts';

const PYTHON = findPython() ?? 'python3';

describe('a command under a lock', () => {
  test.each([
    ['KILL', 137],
    ['SEGV', 139],
    ['TERM', 143],
  ])('killed by SIG%s ends run with %i', async (signal, code) => {
    expect(await run(freshName(), '--', 'sh', '-c', `kill -${signal} $$`)).toMatchObject({ code, stderr: '' });
  });

  test.each([
    ['RTMIN', 34],
    ['RTMIN+3', 37],
    ['RTMAX', 64],
    ['32', 32],
  ])('killed by signal %s, which has no name in Node, ends run with 128 + %i', async (signal, number) => {
    const killed = await run(freshName(), '--', 'bash', '-c', `kill -s ${signal} $$`);
    expect(killed).toMatchObject({ code: 128 + number, signal: null, stderr: '' });
  });

  test('gets its arguments unchanged, without a shell', async () => {
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

  test('shares stdin with run', async () => {
    const cat = ['dist/cli/main.js', 'run', freshName(), '--', 'cat'];
    const { stdout, status } = spawnSync(process.execPath, cat, {
      env: { ...process.env, ...onEtcd() },
      input: 'typed',
    });
    expect({ status, stdout: String(stdout) }).toEqual({ status: 0, stdout: 'typed' });
  });

  test('keeps its entry while it runs, even for longer than the TTL', async () => {
    const name = freshName();
    const job = witness(0);
    const { process: child, result } = startRun(name, '--ttl', '9', '--', ...job.command);
    await job.begun();
    const [first] = await queueOn(name);
    const expiry = Date.parse(first?.expiration ?? '');
    await until(Date.now, (time) => time > expiry + 1000);
    expect(await queueOn(name)).toEqual([expect.objectContaining({ key: first?.key, value: first?.value })]);
    child.kill('SIGTERM');
    expect(await result).toMatchObject({ code: 0 });
    expect(await queueOn(name)).toEqual([]);
  });

  test('shares the lock with others that use --shared, and has its identity in the queue', async () => {
    const name = freshName();
    const first = witness(0);
    startRun(name, '--shared', '--identity', 'me', '--', ...first.command);
    await first.begun();
    const [entry] = await queueOn(name);
    expect(entry?.value).toMatch(/^shared:id:me:/);
    expect(await run(name, '--shared', '--if-available', '--', 'true')).toMatchObject({ code: 0 });
    expect(await run(name, '--if-available', '--', 'true')).toMatchObject({ code: 1 });
  });

  test('runs at the same time as others with the same --limit, as many as it says', async () => {
    const name = freshName();
    const jobs = [witness(0), witness(0)];
    for (const job of jobs) startRun(name, '--limit', '2', '--', ...job.command);
    for (const job of jobs) await job.begun();
    expect((await queueOn(name)).map(({ value }) => value.slice(0, 8))).toEqual(['limit:2:', 'limit:2:']);
    expect(await run(name, '-n', '2', '--if-available', '--', 'true')).toMatchObject({ code: 1, stderr: '' });
    const { code, stderr } = await run(name, '-n', '3', '--', 'true');
    expect({ code, stderr }).toMatchObject({ code: 64, stderr: expect.stringContaining('limit must be 2, as for ') });
  });

  test.each<[string, string[], (pid?: number) => string]>([
    ['its host name and process id as label', [], (pid) => `@${encodeURIComponent(`${hostname()}:${pid}`)}`],
    ['the label of --label, encoded', ['--label', 'a:b\n'], () => '@a%3Ab%0A'],
    ['no label after --label ""', ['--label', ''], () => ''],
  ])('has %s in the queue', async (_, flags, ending) => {
    const name = freshName();
    const job = witness(0);
    const { process: child } = startRun(name, ...flags, '--', ...job.command);
    await job.begun();
    const [entry] = await queueOn(name);
    expect(entry?.value.slice(32)).toBe(ending(child.pid));
  });
});

describe('run does not start the command', () => {
  test('if the lock is held and --if-available is set: exit code 1, no output', async () => {
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

  test('if the timeout passes: exit code 124, and the message names the holder', async () => {
    const name = freshName();
    const job = witness(0);
    startRun(name, '--', ...job.command);
    await job.begun();
    const [entry] = await queueOn(name);
    // Long enough to read the queue on a busy machine.
    const { code, stdout, stderr } = await run(name, '--timeout', '5', '--', 'echo', 'ran');
    expect({ code, stdout }).toEqual({ code: 124, stdout: '' });
    const [uuid, label = ''] = entry?.value.split('@') ?? [];
    expect(stderr).toContain(`held by ${decodeURIComponent(label)} (${uuid}, ${entry?.key}, `);
    expect(await queueOn(name)).toHaveLength(1);
    expect(await run(name, '--timeout', '3', '-E', '33', '--', 'echo', 'ran')).toMatchObject({
      code: 33,
      stdout: '',
    });
  });

  test('if the timeout passes in an outage: exit code 124, even with --conflict-exit-code', async () => {
    const env = { ETCD_ENDPOINTS: 'http://127.0.0.1:1' };
    const { code, stdout, stderr } = await runCli(['run', 'x', '--timeout', '1', '-E', '0', '--', 'echo', 'ran'], env);
    expect({ code, stdout }).toEqual({ code: 124, stdout: '' });
    expect(stderr).toContain('127.0.0.1:1');
  });

  test('if etcd fails while it waits behind a holder: exit code 124, even with --conflict-exit-code', async () => {
    const [name, proxy] = [freshName(), await useProxy()];
    await enqueue(name, 'holder');
    const isPoll = ({ query }: ProxiedRequest): boolean => query.get('wait') === 'true';
    const waits = proxy.next(isPoll, 'arrived');
    const { result } = startRunOn(proxy.url, name, '--ttl', '6', '--timeout', '12', '-E', '0', '--', 'echo', 'ran');
    await waits;
    proxy.intercept(() => ({ refuse: true }));
    const { code, stdout, stderr } = await result;
    expect({ code, stdout }).toEqual({ code: 124, stdout: '' });
    expect(stderr).toContain('held by holder');
    expect(stderr).toContain(proxy.url);
    // It does not wait long for a chance to remove its entry.
    expect(stderr).toContain('closed after 1 s; these keys may stay until their TTL has passed: ');
  });

  test('if its entry with an identity is removed while it waits: exit code 125, and the message asks why', async () => {
    const name = freshName();
    const holder = await enqueue(name, 'holder');
    const { result } = startRun(name, '--identity', 'pod-1', '--', 'echo', 'ran');
    const [, own] = await untilQueued(name, 2);
    await raw('DELETE', own?.key ?? '');
    await raw('PUT', holder, { value: 'holder' });
    const { code, stdout, stderr } = await result;
    expect({ code, stdout }).toEqual({ code: 125, stdout: '' });
    expect(stderr).toContain('does another process have the identity "pod-1"?');
    expect(await queueOn(name)).toMatchObject([{ key: holder }]);
  });

  test('if etcd cannot be reached: exit code 69', async () => {
    const args = ['run', freshName(), '--endpoints', 'http://127.0.0.1:1', '--', 'echo', 'ran'];
    expect(await runCli(args)).toMatchObject({ code: 69, stdout: '', stderr: expect.stringContaining('ECONNREFUSED') });
  });

  test.each([
    ['no name', [], /missing required argument 'name'/],
    ['no command', ['x'], /missing required argument 'command'/],
    ['an option that run does not know', ['x', '-l', '--', 'ls'], /unknown option '-l'.*<name> -- <command>/s],
    [
      'a label that is too long',
      ['x', '--label', 'x'.repeat(101), '--', 'true'],
      /label must have at most 100 bytes, got 101/,
    ],
    ['a name with an empty part', ['a//b', '--', 'true'], /lock name must have no empty.*"a\/\/b"/],
    ['a TTL that is not a number', ['x', '--ttl', 'soon', '--', 'true'], /It must be a number, got "soon"/],
    [
      'a TTL that is too small',
      ['x', '--ttl', '0', '--', 'true'],
      /ttl must be an integer number of seconds from 1 .* got 0/,
    ],
    ['a timeout below 0', ['x', '--timeout', '-1', '--', 'true'], /timeout must be .* got -1/],
    [
      'both --if-available and --timeout',
      ['x', '--if-available', '--timeout', '5', '--', 'true'],
      /cannot be used with/,
    ],
    ['both --verbose and --quiet', ['x', '-v', '-q', '--', 'true'], /cannot be used with/],
    ['an exit code above 255', ['x', '-E', '256', '--', 'true'], /exit code must be an integer from 0 to 255, got 256/],
  ])('with %s: exit code 64, and the message says what is wrong', async (_, args, message) => {
    const { code, stdout, stderr } = await run(...args);
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
    expect(stderr).toMatch(message);
  });

  test('if the command does not exist: exit code 127, before it enters the queue', async () => {
    const name = freshName();
    const { code, stderr } = await run(name, '--', 'no-such-command');
    expect({ code, stderr }).toEqual({ code: 127, stderr: 'etcd-v2-lock: command not found: "no-such-command"\n' });
    // Joining the queue would leave its directory behind.
    expect(await queueOn(name)).toEqual([]);
  });

  test('if the command is a directory: exit code 126', async () => {
    const directory = temporaryDirectory();
    const { code, stderr } = await run(freshName(), '--', directory);
    expect({ code, stderr }).toEqual({
      code: 126,
      stderr: `etcd-v2-lock: cannot run ${directory}: not a file\n`,
    });
  });

  test('if the command is not executable: exit code 126', async () => {
    const file = join(temporaryDirectory(), 'notes.txt');
    writeFileSync(file, 'hello');
    const { code, stderr } = await run(freshName(), '--', file);
    expect({ code, stderr }).toEqual({
      code: 126,
      stderr: `etcd-v2-lock: cannot run ${file}: not executable\n`,
    });
  });
});

describe('a run that waits, without a terminal,', () => {
  /** Starts a run that waits behind another; resolves once it waits. `release` ends the other. */
  async function startWaiting(...args: readonly string[]) {
    const name = freshName();
    const holder = witness(0);
    const first = startRun(name, '--identity', 'the-holder', '--', ...holder.command);
    await holder.begun();
    const waiting = startRun(name, ...args, '--', 'echo', 'ran');
    let stderr = '';
    waiting.process.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    await untilQueued(name, 2);
    const says = (text: RegExp) =>
      until(
        () => stderr,
        (all) => text.test(all),
      );
    return { name, waiting, says, release: () => void first.process.kill('SIGTERM') };
  }

  test('prints one line with the holder when it waits, and one line when it holds the lock', async () => {
    const { name, waiting, says, release } = await startWaiting();
    await says(/waiting/);
    release();
    const { code, stdout, stderr } = await waiting.result;
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'ran\n' });
    expect(stderr.replace(/after [\d.]+ s/, 'after some time')).toBe(
      `etcd-v2-lock: waiting at position 2 of 2 for ${name}, held by the-holder\n` +
        `etcd-v2-lock: acquired ${name} after some time\n`,
    );
  });

  test('prints no line about its own entry while its append is not answered', async () => {
    const proxy = await useProxy();
    const answer = gate();
    proxy.intercept(({ method }) => (method === 'POST' ? { answerAfter: answer.opened } : undefined));
    const shown = proxy.next(({ method }) => method === 'GET', 'answered');
    const { result } = startRunOn(proxy.url, freshName(), '--ttl', '60', '--', 'true');
    await shown;
    answer.open();
    expect(await result).toMatchObject({ code: 0, stderr: '' });
  });

  test('prints no line about an acquisition if the timeout passes', async () => {
    const { waiting, says } = await startWaiting('--timeout', '6', '-E', '33');
    await says(/waiting/);
    const { code, stderr } = await waiting.result;
    expect(code).toBe(33);
    expect(stderr).toMatch(
      /^etcd-v2-lock: waiting at position 2 of 2 for .*\n.* not acquired within 6 s; held by .*\n$/,
    );
  });

  test('prints every change and step with --verbose', async () => {
    const { name, waiting, says, release } = await startWaiting('-v');
    await says(/position 2 of 2/);
    const other = await raw('POST', `/_locks/${name}`, { value: 'another', ttl: '600' });
    await says(/position 2 of 3/);
    release();
    const { stderr } = await waiting.result;
    await raw('DELETE', other.body.node.key);
    const lines = stderr.replace(/after [\d.]+ s/g, 'after some time').replace(/process \d+/, 'process n');
    expect(lines.replace(/\/_locks\/\S+\/\d{20}, fencing token \d+/, 'key and token').split('\n')).toEqual([
      `etcd-v2-lock: waiting at position 2 of 2 for ${name}, held by the-holder`,
      `etcd-v2-lock: waiting at position 2 of 3 for ${name}, held by the-holder`,
      `etcd-v2-lock: acquired ${name} after some time: key and token`,
      'etcd-v2-lock: started the command as process n',
      'etcd-v2-lock: the command ended with exit code 0',
      `etcd-v2-lock: the hold of ${name} ended after some time`,
      '',
    ]);
  });

  test('prints nothing with --quiet', async () => {
    const { name, waiting, release } = await startWaiting('-q', '--ttl', '9');
    const [, own] = await queueOn(name);
    // The first renewal of the waiting entry: later than any report.
    await until(
      () => raw('GET', own?.key ?? ''),
      ({ body }) => body.node.expiration !== own?.expiration,
    );
    release();
    expect(await waiting.result).toMatchObject({ code: 0, stdout: 'ran\n', stderr: '' });
  });
});

test('run without a wait prints its steps with --verbose only, and the taken lock of --if-available too', async () => {
  const name = freshName();
  expect((await run(name, '-v', '--', 'true')).stderr).toMatch(
    /^.*acquired .*\n.*started .*\n.*ended with exit code 0\n.*the hold of .* ended .*\n$/,
  );
  const job = witness(0);
  startRun(name, '--', ...job.command);
  await job.begun();
  expect(await run(name, '-v', '--if-available', '--', 'true')).toMatchObject({
    code: 1,
    stderr: `etcd-v2-lock: lock ${name} is taken\n`,
  });
});
