import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { runCli } from '../../support/cli.ts';
import { base64, gateway } from '../../support/gateway.ts';
import { escaped, freshName, queueOn, raw } from '../../support/locks.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { run, startRun } from '../running.ts';
import { witness } from '../witness.ts';

/** An interval that does not end during a test. */
const LONG = '366d';

/** A name whose record is removed at the end of the test. */
function useName(): string {
  const name = freshName();
  onTestFinished(async () => void (await raw('DELETE', markerOf(name))));
  return name;
}

const markerOf = (name: string): string => escaped(`/_locks_ticks:${name}`);
const recordOf = async (name: string) => (await raw('GET', markerOf(name))).body.node?.value;

/** Records another tick as the last one that was begun. */
const record = (name: string, at: string, state: string) =>
  raw('PUT', markerOf(name), { value: `${at} ${state} ${'0'.repeat(32)}@web-1%3A7`, ttl: '600' });

describe('run --once', () => {
  test('of three hosts exactly one runs the command, and the others exit with 0', async () => {
    const name = useName();
    const ran = join(temporaryDirectory(), 'ran');
    appendFileSync(ran, '');
    const job = ['--', 'sh', '-c', 'echo ran >> "$0"', ran];
    const results = await Promise.all([1, 2, 3].map(() => run(name, '-q', '--once', LONG, ...job)));
    expect(results).toEqual(results.map(() => ({ code: 0, signal: null, stdout: '', stderr: '' })));
    expect(await run(name, '--once', LONG, ...job)).toMatchObject({ code: 0 });
    expect(readFileSync(ran, 'utf8')).toBe('ran\n');
    expect(await queueOn(name)).toEqual([]);
    expect(await recordOf(name)).toMatch(/^\d{4}-\d\d-\d\dT00:00:00\.000Z ran [0-9a-f]{32}@/);
  });

  test('exits with the --conflict-exit-code if another host has begun the tick, and --verbose says which', async () => {
    const name = useName();
    await run(name, '--once', LONG, '--label', 'web-1', '--', 'true');
    const { code, stderr } = await run(name, '--once', LONG, '-E', '9', '--verbose', '--', 'false');
    expect(code).toBe(9);
    expect(stderr).toMatch(/^etcd-v2-lock: the command was not run: web-1 has already begun the tick \S+ of \S+\n$/);
  });

  test('exits with the code of the command, and does not run a failed tick again', async () => {
    const name = useName();
    expect(await run(name, '--once', LONG, '--', 'sh', '-c', 'exit 3')).toMatchObject({ code: 3, stderr: '' });
    expect(await recordOf(name)).toContain(' failed ');
    expect(await run(name, '--once', LONG, '--', 'false')).toMatchObject({ code: 0 });
  });

  test('gives the tick and the number of missed ticks to the command, and warns of missed and of lost ones', async () => {
    const name = useName();
    const today = new Date();
    today.setUTCHours(0, 0, 0, 0);
    const earlier = new Date(today.getTime() - 4 * 86_400_000).toISOString();
    await record(name, earlier, 'begun');
    const { code, stdout, stderr } = await run(
      ...[name, '--once', '1d', '--', 'sh', '-c', 'echo $ETCD_LOCK_TICK $ETCD_LOCK_MISSED'],
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${today.toISOString()} 3\n` });
    expect(stderr).toBe(
      `etcd-v2-lock: no host began the last 3 ticks of ${name} before ${today.toISOString()}\n` +
        `etcd-v2-lock: the tick ${earlier} of ${name} has no recorded end: web-1:7 began it, but may have crashed, lost the lock, or failed to reach etcd. Its job may still run\n`,
    );
  });

  test('a killed run loses the tick, which does not run again', async () => {
    const name = useName();
    const job = witness(0);
    const { process: child } = startRun(name, '--once', LONG, '--', ...job.command);
    await job.begun();
    child.kill('SIGKILL');
    expect(await run(name, '--once', LONG, '-E', '9', '--', 'false')).toMatchObject({ code: 9 });
    expect(await recordOf(name)).toContain(' begun ');
  });

  test('waits for the lock, at most until --timeout', async () => {
    const name = useName();
    const job = witness(0);
    startRun(name, '--ttl', '600', '--', ...job.command);
    await job.begun();
    const { code, stderr } = await run(name, '--once', LONG, '--timeout', '5', '--', 'true');
    expect(code).toBe(124);
    expect(stderr).toContain('not acquired within 5 s; held by');
    expect(await recordOf(name)).toBeUndefined();
  });

  test('a signal ends the wait', async () => {
    const name = useName();
    const job = witness(0);
    startRun(name, '--ttl', '600', '--', ...job.command);
    await job.begun();
    const waiting = startRun(name, '--once', LONG, '--verbose', '--', 'true');
    await expect.poll(() => queueOn(name), { timeout: 60_000 }).toHaveLength(2);
    waiting.process.kill('SIGTERM');
    expect((await waiting.result).code).toBe(143);
    expect(await queueOn(name)).toHaveLength(1);
  });

  test('exits with 69 if etcd cannot be reached', async () => {
    const { code } = await runCli(['run', 'x', '--once', LONG, '--', 'true'], { ETCD_ENDPOINTS: 'http://127.0.0.1:1' });
    expect(code).toBe(69);
  });

  test('runs on etcd v3', async () => {
    const name = freshName();
    onTestFinished(async () => void (await gateway('/kv/deleterange', { key: base64(`/_locks_ticks:${name}`) })));
    const env = { ETCD_ENDPOINTS: inject('etcd'), ETCD_LOCK_API: 'v3' };
    const command = [name, '--once', LONG, '--', 'echo', 'ran'];
    expect(await runCli(['run', ...command], env)).toMatchObject({ code: 0, stdout: 'ran\n', stderr: '' });
    expect(await runCli(['run', ...command], env)).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  test.each([
    [['--once', 'hourly'], 'got "hourly"'],
    [['--once', '@daily', '--time-zone', 'Mars'], 'got "Mars"'],
    [['--once', '1h', '--time-zone', 'UTC'], '--time-zone is for a cron expression, got "UTC" with --once "1h"'],
    [['--time-zone', 'UTC'], '--time-zone needs --once'],
    [['--once', '1h', '--shared'], "option '--once <every>' cannot be used with option '--shared'"],
    [['--once', '1h', '--if-available'], "option '--once <every>' cannot be used with option '--if-available'"],
    [['--once', '1h', '--hold-at-least', '9'], "option '--once <every>' cannot be used with option '--hold-at-least"],
    [['--once', '1h', '--api', 'both'], 'ticks need a client with api "v2" or "v3", got api "both"'],
  ])('refuses %j with exit code 64', async (flags, message) => {
    const { code, stderr } = await run(freshName(), ...flags, '--', 'true');
    expect(code).toBe(64);
    expect(stderr).toContain(message);
  });
});
