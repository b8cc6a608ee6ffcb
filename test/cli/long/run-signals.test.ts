import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { endOf, freshName, queueOn, untilQueued } from '../../support/locks.ts';
import { isThere, untilGone, untilStopped } from '../../support/processes.ts';
import { elapsed, moment } from '../../support/stalls/stalls.mjs';
import { temporaryDirectory } from '../../support/temporary.ts';
import { until } from '../../support/until.ts';
import { startRun } from '../running.ts';
import { witness } from '../witness.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
const ENDING = SIGNALS.filter((signal) => !signal.startsWith('SIGUSR'));

describe('without a terminal', () => {
  test.each(SIGNALS)('%s reaches the command and its children exactly once', async (signal) => {
    const job = witness(2, '--stubborn');
    const { process: run } = startRun(freshName(), '--', ...job.command);
    await job.begun();
    run.kill(signal);
    await until(job.signals, (all) => all.every((signals) => signals.length > 0));
    // Once a later signal has arrived, every earlier one has arrived too.
    const last = signal === 'SIGUSR2' ? 'SIGUSR1' : 'SIGUSR2';
    run.kill(last);
    await until(job.signals, (all) => all.every((signals) => signals.includes(last)));
    expect(job.signals()).toEqual([
      [signal, last],
      [signal, last],
      [signal, last],
    ]);
  });

  test.each(ENDING)('the command decides what %s means', async (signal) => {
    const job = witness(1);
    const { process: run, result } = startRun(freshName(), '--', ...job.command);
    await job.begun();
    run.kill(signal);
    expect(await result).toMatchObject({ code: 0, signal: null, stderr: '' });
  });

  test('a command that a relayed signal kills ends with 128 + n', async () => {
    const name = freshName();
    const begun = join(temporaryDirectory(), 'begun');
    const { process: run, result } = startRun(name, '--', 'sh', '-c', 'touch "$1"; exec sleep 1000', 'sh', begun);
    await until(() => existsSync(begun), Boolean);
    run.kill('SIGTERM');
    expect(await result).toMatchObject({ code: 143, signal: null });
    expect(await queueOn(name)).toEqual([]);
  });

  test('a stopped command is continued by a signal that ends commands', async () => {
    const job = witness(1);
    const { process: run, result } = startRun(freshName(), '--', ...job.command);
    const pids = await job.begun();
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    await untilStopped(pids);
    run.kill('SIGTERM');
    expect(await result).toMatchObject({ code: 0 });
    expect(job.signals()).toEqual([['SIGTERM'], ['SIGTERM']]);
  });

  test('signals reach children in the background, which outlive the command', async () => {
    const name = freshName();
    const job = witness(0, '--stubborn');
    const { process: run } = startRun(name, '--', 'sh', '-c', '("$@" &); sleep 1000', 'sh', ...job.command);
    const [pid = 0] = await job.begun();
    run.kill('SIGUSR2');
    await until(job.signals, ([signals]) => signals?.length === 1);
    expect(job.signals()).toEqual([['SIGUSR2']]);
    await until(
      () => queueOn(name),
      (queue) => queue.length === 0,
    ); // the signal killed the shell
    expect(isThere(pid)).toBe(true);
  });

  test.each(ENDING)('%s ends the wait for the lock, and the command is not started', async (signal) => {
    const name = freshName();
    const holder = witness(0);
    startRun(name, '--', ...holder.command);
    await holder.begun();
    const { process: run, result } = startRun(name, '-q', '--', 'echo', 'ran');
    const [first] = await untilQueued(name, 2);
    run.kill(signal);
    const code = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143 }[signal as 'SIGHUP'];
    expect(await result).toEqual({ code, signal: null, stdout: '', stderr: '' });
    expect((await queueOn(name)).map(({ key }) => key)).toEqual([first?.key]);
  });

  test('SIGUSR1 and SIGUSR2 do not end the wait for the lock', async () => {
    const name = freshName();
    const holder = witness(0);
    const { process: first } = startRun(name, '--', ...holder.command);
    await holder.begun();
    const { process: run, result } = startRun(name, '-q', '--', 'echo', 'ran');
    await untilQueued(name, 2);
    run.kill('SIGUSR1');
    run.kill('SIGUSR2');
    first.kill('SIGTERM');
    expect(await result).toMatchObject({ code: 0, stdout: 'ran\n', stderr: '' });
  });
});

/** Seconds: so long that a hold outlives the start of a process on a busy machine. */
const TTL = 15;

describe('kill -9', () => {
  test('of run also kills the command, and the next run waits no longer than the TTL', async () => {
    const name = freshName();
    const job = witness(0, '--stubborn');
    const { process: run } = startRun(name, '--ttl', String(TTL), '--', ...job.command);
    const [pid = 0] = await job.begun();
    const [entry] = await queueOn(name);
    const ended = await endOf(entry?.key ?? '');
    const next = startRun(name, '--', 'true');
    await untilQueued(name, 2);
    run.kill('SIGKILL');
    const killed = moment();
    await untilGone(pid);
    expect(await ended()).toBe('expire');
    // One second more: etcd expires keys every half second.
    expect(elapsed(killed)).toBeLessThan((TTL + 1) * 1000);
    expect(await next.result).toMatchObject({ code: 0 });
  });
});
