import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findPython } from '../../../scripts/find.mjs';
import { freshName, queueOn, raw, untilQueued } from '../../support/locks.ts';
import { groupMembers, isThere, statOf, untilGone, untilStopped } from '../../support/processes.ts';
import { enqueue } from '../../support/queues.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { type OnTerminal, startOnTerminal } from '../../support/terminal.ts';
import { until } from '../../support/until.ts';
import { onEtcd, startRun } from '../running.ts';
import { type Witness, witness } from '../witness.ts';

/** What ^C and ^\ send. */
const KEYS = ['SIGINT', 'SIGQUIT'] as const;
const OTHERS = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const;

/** SIGTERM for a process group on a terminal: from its sender, and from run. */
const TWICE_AT_MOST = [['SIGTERM'], ['SIGTERM', 'SIGTERM']];

const CTRL_C = '\u0003';
const CTRL_Z = '\u001a';
const CTRL_BACKSLASH = '\u001c';

const RUN = [process.execPath, 'dist/cli/main.js', 'run'];

/** Starts `run` as the leader of the session, like a terminal emulator or `ssh -t`. */
const runOnTerminal = (...args: readonly string[]): OnTerminal => startOnTerminal([...RUN, ...args], onEtcd());

/** Starts a shell with job control, which starts each command line in its own process group. */
async function shellOnTerminal(): Promise<OnTerminal> {
  const shell = startOnTerminal(['bash', '--norc', '--noprofile', '-i'], { ...onEtcd(), PS1: 'shell> ' });
  await shell.shows(/shell> $/);
  return shell;
}

const lineOf = (...args: readonly string[]): string => [...RUN, ...args].map((word) => `'${word}'`).join(' ');

/** The process of `run` itself. */
const runOf = (pid = 0): number => statOf(pid)?.parent ?? 0;

/** Sends a last signal to `run`; resolves to the signals that each process of the job got before that one. */
async function signalsBefore(last: 'SIGUSR1' | 'SIGUSR2', job: Witness, run: number): Promise<string[][]> {
  process.kill(run, last);
  const all = await until(job.signals, (lists) => lists.every((signals) => signals.includes(last)));
  return all.map((signals) => signals.slice(0, signals.indexOf(last)));
}

const untilSignalled = (job: Witness): Promise<string[][]> =>
  until(job.signals, (all) => all.every((signals) => signals.length > 0));

describe('on a terminal', () => {
  test.each([
    ['^C', CTRL_C, 'SIGINT'],
    ['^\\', CTRL_BACKSLASH, 'SIGQUIT'],
  ])('%s reaches the command and its children exactly once', async (_, key, signal) => {
    const job = witness(2, '--stubborn');
    const terminal = runOnTerminal(freshName(), '--', ...job.command);
    const [pid] = await job.begun();
    terminal.type(key);
    await untilSignalled(job);
    expect(await signalsBefore('SIGUSR1', job, runOf(pid))).toEqual([[signal], [signal], [signal]]);
  });

  test.each(OTHERS)('%s sent to run alone reaches the command and its children exactly once', async (signal) => {
    const job = witness(2, '--stubborn');
    runOnTerminal(freshName(), '--', ...job.command);
    const [pid] = await job.begun();
    process.kill(runOf(pid), signal);
    await untilSignalled(job);
    const last = signal === 'SIGUSR2' ? 'SIGUSR1' : 'SIGUSR2';
    expect(await signalsBefore(last, job, runOf(pid))).toEqual([[signal], [signal], [signal]]);
  });

  test.each(KEYS)('%s sent to run alone in the foreground is not relayed', async (signal) => {
    const job = witness(1, '--stubborn');
    runOnTerminal(freshName(), '--', ...job.command);
    const [pid] = await job.begun();
    process.kill(runOf(pid), signal);
    expect(await signalsBefore('SIGUSR1', job, runOf(pid))).toEqual([[], []]);
  });

  test.each(KEYS)('%s sent to run alone in the background reaches the command exactly once', async (signal) => {
    const job = witness(1, '--stubborn');
    const shell = await shellOnTerminal();
    shell.type(`${lineOf(freshName(), '--', ...job.command)} &\n`);
    const [pid] = await job.begun();
    process.kill(runOf(pid), signal);
    await untilSignalled(job);
    expect(await signalsBefore('SIGUSR1', job, runOf(pid))).toEqual([[signal], [signal]]);
  });

  test('^C is relayed to a command that moved to its own session', async () => {
    const job = witness(1, '--stubborn');
    const terminal = runOnTerminal(freshName(), '--', 'setsid', ...job.command);
    const [pid] = await job.begun();
    terminal.type(CTRL_C);
    await untilSignalled(job);
    expect(await signalsBefore('SIGUSR1', job, runOf(pid))).toEqual([['SIGINT'], ['SIGINT']]);
  });

  test('a command gets SIGTERM for the whole process group from its sender and from run', async () => {
    const job = witness(1, '--stubborn');
    runOnTerminal(freshName(), '--', ...job.command);
    const [pid = 0] = await job.begun();
    expect(statOf(pid)?.group).toBe(runOf(pid));
    process.kill(-runOf(pid), 'SIGTERM');
    await untilSignalled(job);
    // The kernel merges the two if the first is still pending.
    for (const signals of await signalsBefore('SIGUSR1', job, runOf(pid)))
      expect(TWICE_AT_MOST).toContainEqual(signals);
  });

  test('signals reach children whose parent has ended', async () => {
    const job = witness(0, '--stubborn');
    runOnTerminal(freshName(), '--', 'sh', '-c', '("$@" &); exec sleep 1000', 'sh', ...job.command);
    const [orphan = 0] = await job.begun();
    await until(
      () => statOf(orphan)?.parent,
      (parent) => parent === 1 || statOf(parent ?? 0)?.group !== statOf(orphan)?.group,
    );
    process.kill(statOf(orphan)?.group ?? 0, 'SIGUSR2');
    expect(await untilSignalled(job)).toEqual([['SIGUSR2']]);
  });

  test('a hang-up reaches the command once, and the lock is released', async () => {
    const name = freshName();
    const job = witness(1);
    const terminal = runOnTerminal(name, '--', ...job.command);
    await job.begun();
    terminal.hangUp();
    expect(await terminal.ended).toBe(0);
    expect(job.signals()).toEqual([['SIGHUP'], ['SIGHUP']]);
    expect(await queueOn(name)).toEqual([]);
  });

  test('a hang-up of a shell ends the command, and the lock is released', async () => {
    const name = freshName();
    const job = witness(1);
    const shell = await shellOnTerminal();
    shell.type(`${lineOf(name, '--', ...job.command)}\n`);
    const pids = await job.begun();
    const run = runOf(pids[0]);
    shell.hangUp();
    for (const pid of [...pids, run]) await untilGone(pid);
    expect(new Set(job.signals().flat())).toEqual(new Set(['SIGHUP']));
    expect(await queueOn(name)).toEqual([]);
  });

  test('a command can ask for a password', async () => {
    const ask = "import getpass; print('got', len(getpass.getpass('Password: ')))";
    const terminal = runOnTerminal(freshName(), '--', findPython() ?? '', '-c', ask);
    await terminal.shows(/Password: /);
    terminal.type('secret\n');
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).toMatch(/got 6/);
    expect(terminal.shown()).not.toMatch(/secret/);
  });

  test('^Z stops run and the command, and fg continues them', async () => {
    const name = freshName();
    const job = witness(1);
    const shell = await shellOnTerminal();
    shell.type(`${lineOf(name, '--', ...job.command)}\n`);
    const pids = await job.begun();
    const all = [runOf(pids[0]), ...pids];
    shell.type(CTRL_Z);
    await untilStopped(all);
    shell.type('fg\n');
    await untilStopped(all, false);
    expect(await queueOn(name)).toHaveLength(1);
    shell.type(CTRL_C);
    await until(
      () => queueOn(name),
      (queue) => queue.length === 0,
    );
    expect(job.signals()).toEqual([['SIGINT'], ['SIGINT']]);
  });

  test('run relays SIGTERM to a stopped command', async () => {
    const job = witness(1);
    const shell = await shellOnTerminal();
    shell.type(`${lineOf(freshName(), '--', ...job.command)}\n`);
    const pids = await job.begun();
    const run = runOf(pids[0]);
    shell.type(CTRL_Z);
    await untilStopped([run, ...pids]);
    process.kill(run, 'SIGTERM');
    process.kill(run, 'SIGCONT');
    for (const pid of [run, ...pids]) await untilGone(pid);
    expect(job.signals()).toEqual([['SIGTERM'], ['SIGTERM']]);
  });

  test('^C before run is ready to start the command ends run', async () => {
    const directory = temporaryDirectory();
    const [probing, go] = [join(directory, 'probing'), join(directory, 'go')];
    const slow = `#!/bin/sh
trap '' INT
touch ${probing}
until [ -e ${go} ]; do sleep 0.05; done
shift 2; [ "$1" = -- ] && shift
exec "$@"
`;
    writeFileSync(join(directory, 'setpriv'), slow, { mode: 0o755 });
    const path = `${directory}:${process.env['PATH']}`;
    const terminal = startOnTerminal([...RUN, freshName(), '--', 'echo', 'it', 'ran'], { ...onEtcd(), PATH: path });
    await until(() => existsSync(probing), Boolean);
    terminal.type(CTRL_C);
    await terminal.shows(/\^C/);
    writeFileSync(go, '');
    expect(await terminal.ended).toBe(130);
    expect(terminal.shown()).not.toContain('it ran');
  });

  test('kill %1 in a shell ends run and the command in the background', async () => {
    const job = witness(1);
    const shell = await shellOnTerminal();
    shell.type(`${lineOf(freshName(), '--', ...job.command)} &\n`);
    const pids = await job.begun();
    shell.type('kill %1\n');
    for (const pid of [runOf(pids[0]), ...pids]) await untilGone(pid);
    for (const signals of job.signals()) expect(TWICE_AT_MOST).toContainEqual(signals);
  });

  test('kill -9 of run also kills the command, and leaves no process behind', async () => {
    const job = witness(0, '--stubborn');
    const shell = await shellOnTerminal();
    shell.type(`${lineOf(freshName(), '--', ...job.command)}\n`);
    const [pid = 0] = await job.begun();
    const run = runOf(pid);
    process.kill(run, 'SIGKILL');
    await untilGone(pid);
    await until(
      () => groupMembers(run),
      (members) => members.length === 0,
    );
    expect(isThere(run)).toBe(false);
  });

  test('a wait whose entry was removed says that run queues up again', async () => {
    const name = freshName();
    const holder = await enqueue(name, 'the-holder');
    const terminal = runOnTerminal(name, '--', 'true');
    const [, own] = await untilQueued(name, 2);
    await raw('DELETE', own?.key ?? '');
    await raw('PUT', holder, { value: 'the-holder' });
    await terminal.shows(new RegExp(`${own?.key} is lost: its key is gone; queueing up again`));
    await untilQueued(name, 2);
    await raw('DELETE', holder);
    expect(await terminal.ended).toBe(0);
  });

  test('a wait longer than a second shows the holder and the position', async () => {
    const name = freshName().slice(0, 20); // the status must fit on one line
    const holder = witness(0);
    const { process: first } = startRun(name, '--label', 'the-holder', '--', ...holder.command);
    await holder.begun();
    const terminal = runOnTerminal(name, '--', 'echo', 'mine');
    await untilQueued(name, 2);
    await terminal.shows(new RegExp(`waiting \\d+s at position 2 of 2 for ${name}, held by the-holder`));
    first.kill('SIGTERM');
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).toContain('\r\u001b[Kmine');
  });
});
