import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { freshName, queueOn, type RawEntry, raw } from '../../support/locks.ts';
import { isThere } from '../../support/processes.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { run, startRun } from '../running.ts';
import { witness } from '../witness.ts';

/** Seconds; longer than a test on a busy machine. */
const LEAST = 300;
/** Seconds; long enough for a job on a busy machine to have begun. */
const MAX = '8';

/** Returns the only entry in the queue, which nobody removes but this. */
async function takeKept(name: string): Promise<RawEntry | undefined> {
  const [entry, ...others] = await queueOn(name);
  expect(others).toEqual([]);
  await raw('DELETE', entry?.key ?? '');
  return entry;
}

describe('run --hold-at-least', () => {
  test('lets exactly one of three hosts run a short job, if they start 0, 0.5 and 1 s late', async () => {
    const name = freshName();
    const ran = join(temporaryDirectory(), 'ran');
    appendFileSync(ran, '');
    const start = async (late: number) => {
      await sleep(late * 1000);
      const job = ['sh', '-c', 'echo ran >> "$0"', ran];
      return startRun(name, '--if-available', '--hold-at-least', String(LEAST), '--', ...job).result;
    };
    const results = await Promise.all([0, 0.5, 1].map(start));
    expect(results.map(({ code }) => code).sort()).toEqual([0, 1, 1]);
    expect(readFileSync(ran, 'utf8')).toBe('ran\n');
    expect((await takeKept(name))?.ttl).toBeGreaterThan(30);
  });

  test('exits with the code of the command at once, and leaves the entry to expire', async () => {
    const name = freshName();
    const late = await run(name, '--hold-at-least', String(LEAST), '--', 'sh', '-c', 'exit 3');
    expect(late).toMatchObject({ code: 3, stderr: '' });
    expect(await run(name, '--if-available', '--', 'true')).toMatchObject({ code: 1 });
    expect((await takeKept(name))?.ttl).toBeLessThanOrEqual(LEAST);
  });

  test('keeps the lock for the rest of the time after SIGTERM', async () => {
    const name = freshName();
    const job = witness(0);
    const { process: child, result } = startRun(name, '--hold-at-least', String(LEAST), '--', ...job.command);
    await job.begun();
    const [entry] = await queueOn(name);
    child.kill('SIGTERM');
    expect(await result).toMatchObject({ code: 0 });
    expect(job.signals()).toEqual([['SIGTERM']]);
    const kept = await takeKept(name);
    expect(kept).toMatchObject({ key: entry?.key, value: entry?.value });
    expect(kept?.ttl).toBeGreaterThan(30);
  });

  test('releases the lock at once if the command runs for longer', async () => {
    const name = freshName();
    expect(await run(name, '--hold-at-least', '0.5', '--', 'sleep', '1')).toMatchObject({ code: 0 });
    expect(await queueOn(name)).toEqual([]);
  });

  test('must not be longer than --max-hold: exit code 64', async () => {
    const { code, stderr } = await run(freshName(), '--hold-at-least', '9', '--max-hold', '8', '--', 'true');
    expect({ code, stderr }).toEqual({
      code: 64,
      stderr: 'etcd-v2-lock: holdAtLeast must be at most maxHold 8, got 9\n',
    });
  });
});

describe('run --max-hold', () => {
  test('gives the job SIGTERM after that time and exits with 75', async () => {
    const name = freshName();
    const job = witness(1);
    const { result } = startRun(name, '--max-hold', MAX, '--', ...job.command);
    const pids = await job.begun();
    const { code, stderr } = await result;
    expect(code).toBe(75);
    expect(stderr).toContain(`lock ${name} has reached --max-hold; `);
    expect(job.signals()).toEqual([['SIGTERM'], ['SIGTERM']]);
    expect(pids.map(isThere)).toEqual([false, false]);
    expect(await queueOn(name)).toEqual([]);
  });

  test('kills a job that ignores SIGTERM within the lease, and holds the lock until then', async () => {
    const name = freshName();
    const job = witness(1, '--stubborn', '--clock');
    const { result } = startRun(name, '--ttl', '6', '--max-hold', MAX, '--', ...job.command);
    const pids = await job.begun();
    // Waits for the lock.
    const next = run(name, '--', process.execPath, '-p', 'process.hrtime.bigint().toString()');
    expect(await result).toMatchObject({ code: 75 });
    expect(pids.map(isThere)).toEqual([false, false]);
    const at = BigInt((await next).stdout.trim());
    for (const last of job.lastDoings()) expect(last).toBeLessThan(at);
    expect(job.signals()).toEqual([['SIGTERM'], ['SIGTERM']]);
  });

  test('has no effect on a command that ends earlier', async () => {
    const name = freshName();
    expect(await run(name, '--max-hold', String(LEAST), '--', 'sh', '-c', 'exit 4')).toMatchObject({ code: 4 });
    expect(await queueOn(name)).toEqual([]);
  });
});
