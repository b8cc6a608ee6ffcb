import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findPython } from '../../scripts/find.mjs';
import { freshName, queueOn, untilQueued } from '../support/locks.ts';
import { groupMembers, isThere, statOf, untilGone, untilStopped } from '../support/processes.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { type OnTerminal, startOnTerminal } from '../support/terminal.ts';
import { until } from '../support/until.ts';
import { onEtcd, startRun } from './running.ts';
import { type Witness, witness } from './witness.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

const CTRL_C = '\u0003';
const CTRL_Z = '\u001a';
const CTRL_BACKSLASH = '\u001c';

const RUN = [process.execPath, 'dist/cli/main.js', 'run'];

/** `run` leads the session, as under a terminal emulator or `ssh -t`. */
const runOnTerminal = (...args: readonly string[]): OnTerminal => startOnTerminal([...RUN, ...args], onEtcd());

/** A shell with job control, which gives each command line a group of its own. */
async function shellOnTerminal(): Promise<OnTerminal> {
  const shell = startOnTerminal(['bash', '--norc', '--noprofile', '-i'], { ...onEtcd(), PS1: 'shell> ' });
  await shell.shows(/shell> $/);
  return shell;
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
};

const commandsWith = (text: string): number[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => commandOf(pid).includes(text));

const lineOf = (...args: readonly string[]): string => [...RUN, ...args].map((word) => `'${word}'`).join(' ');

/** The process of `run` itself. */
const runOf = (pid = 0): number => statOf(pid)?.parent ?? 0;

/** What each has got by the time a last signal to the whole tree has come. */
async function signalsBefore(last: (typeof SIGNALS)[number], job: Witness, run: number): Promise<string[][]> {
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
  ])('what %s sends is not sent again', async (_, key, signal) => {
    const job = witness(2, '--stubborn');
    const terminal = runOnTerminal(freshName(), '--', ...job.command);
    const [pid] = await job.begun();
    terminal.type(key);
    await untilSignalled(job);
    expect(await signalsBefore('SIGUSR1', job, runOf(pid))).toEqual([[signal], [signal], [signal]]);
  });

  test.each(SIGNALS)('%s for run alone reaches the command and its children exactly once', async (signal) => {
    const job = witness(2, '--stubborn');
    runOnTerminal(freshName(), '--', ...job.command);
    const [pid] = await job.begun();
    process.kill(runOf(pid), signal);
    await untilSignalled(job);
    const last = signal === 'SIGUSR2' ? 'SIGUSR1' : 'SIGUSR2';
    expect(await signalsBefore(last, job, runOf(pid))).toEqual([[signal], [signal], [signal]]);
  });

  test('a signal for the whole group is not sent again', async () => {
    const job = witness(2, '--stubborn');
    runOnTerminal(freshName(), '--', ...job.command);
    const [pid = 0] = await job.begun();
    expect(statOf(pid)?.group).toBe(runOf(pid));
    process.kill(-runOf(pid), 'SIGTERM');
    await untilSignalled(job);
    expect(await signalsBefore('SIGUSR1', job, runOf(pid))).toEqual([['SIGTERM'], ['SIGTERM'], ['SIGTERM']]);
  });

  test('the same signal from the terminal and then for run alone comes twice', async () => {
    const job = witness(1, '--stubborn');
    const terminal = runOnTerminal(freshName(), '--', ...job.command);
    const [pid] = await job.begun();
    terminal.type(CTRL_C);
    await untilSignalled(job);
    expect(await signalsBefore('SIGUSR1', job, runOf(pid))).toEqual([['SIGINT'], ['SIGINT']]);
    process.kill(runOf(pid), 'SIGINT');
    const both = ['SIGINT', 'SIGUSR1', 'SIGINT'];
    await until(job.signals, (all) => all.every((signals) => signals.length === 3));
    expect(await signalsBefore('SIGUSR2', job, runOf(pid))).toEqual([both, both]);
  });

  test('children that lost their parent are met, too', async () => {
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

  test('a hang-up reaches the command once, and the lock is given back', async () => {
    const name = freshName();
    const job = witness(1);
    const terminal = runOnTerminal(name, '--', ...job.command);
    await job.begun();
    terminal.hangUp();
    expect(await terminal.ended).toBe(0);
    expect(job.signals()).toEqual([['SIGHUP'], ['SIGHUP']]);
    expect(await queueOn(name)).toEqual([]);
  });

  test('a command asks for a password as it would without a lock', async () => {
    const ask = "import getpass; print('got', len(getpass.getpass('Password: ')))";
    const terminal = runOnTerminal(freshName(), '--', findPython() ?? '', '-c', ask);
    await terminal.shows(/Password: /);
    terminal.type('secret\n');
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).toMatch(/got 6/);
    expect(terminal.shown()).not.toMatch(/secret/);
  });

  test('^Z stops it all and fg goes on', async () => {
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

  test('continued alone after ^Z, run still ends its command', async () => {
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

  test('a signal for whatever has the name of the package reaches the command, as pkill -f sends it', async () => {
    const job = witness(1, '--stubborn');
    runOnTerminal(freshName(), '--', ...job.command);
    const [pid = 0] = await job.begun();
    const run = runOf(pid);
    for (const member of groupMembers(run))
      if (readFileSync(`/proc/${member}/cmdline`, 'utf8').includes('dist/cli/')) process.kill(member, 'SIGTERM');
    await untilSignalled(job);
    expect(await signalsBefore('SIGUSR1', job, run)).toEqual([['SIGTERM'], ['SIGTERM']]);
  });

  test('^C while it finds out how to start the command is not lost', async () => {
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

  test('a shell ends it in the background, once', async () => {
    const job = witness(1);
    const shell = await shellOnTerminal();
    shell.type(`${lineOf(freshName(), '--', ...job.command)} &\n`);
    const pids = await job.begun();
    shell.type('kill %1\n');
    for (const pid of [runOf(pids[0]), ...pids]) await untilGone(pid);
    expect(job.signals()).toEqual([['SIGTERM'], ['SIGTERM']]);
  });

  test('run killed by -9 takes the command with it, and leaves no process behind', async () => {
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

  test('run starts its command also where its helper process was stopped while it waited', async () => {
    const name = freshName();
    const holder = witness(0);
    const { process: first } = startRun(name, '--', ...holder.command);
    await holder.begun();
    const terminal = runOnTerminal(name, '--', 'echo', 'it', 'ran');
    await untilQueued(name, 2);
    const [helper = 0] = await until(
      () => commandsWith('lock-bystander').filter((pid) => commandOf(statOf(pid)?.parent ?? 0).includes(name)),
      ({ length }) => length === 1,
    );
    process.kill(helper, 'SIGSTOP');
    await untilStopped([helper]);
    first.kill('SIGTERM');
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).toContain('it ran');
  });

  test('a wait that is longer than a second tells for whom', async () => {
    const name = freshName().slice(0, 20); // to have it all in one line
    const holder = witness(0);
    const { process: first } = startRun(name, '--identity', 'the-holder', '--', ...holder.command);
    await holder.begun();
    const terminal = runOnTerminal(name, '--', 'echo', 'mine');
    await untilQueued(name, 2);
    await terminal.shows(new RegExp(`waiting for ${name}, held by the-holder, position 2 of 2`));
    first.kill('SIGTERM');
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown()).toContain('\r\u001b[Kmine');
  });
});
