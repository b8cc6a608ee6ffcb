import { fileURLToPath } from 'node:url';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { findPython } from '../../../scripts/find.mjs';
import { LockManager } from '../../../src/index.ts';
import { startTcpProxy, type TcpProxy } from '../../faults/tcp-proxy.ts';
import { fencedResource } from '../../support/fenced-resource.ts';
import { freshName, queueOn, raw, untilQueued, useClient } from '../../support/locks.ts';
import { isThere, statOf, untilGone } from '../../support/processes.ts';
import { startOnTerminal } from '../../support/terminal.ts';
import { until } from '../../support/until.ts';
import { startRunOn } from '../running.ts';
import { witness } from '../witness.ts';

/** Seconds. A job gets SIGTERM two fifteenths of it before SIGKILL: 4 s, enough to handle the signal on a busy machine. */
const TTL = 30;
/** Seconds, for jobs of which it does not matter whether they handle SIGTERM in time. */
const SHORT_TTL = 12;
const WRITER = fileURLToPath(new URL('../writer.py', import.meta.url));
const PYTHON = findPython() ?? '';

/** Starts a proxy to etcd that can break the connection. */
async function useLine(): Promise<TcpProxy> {
  const line = await startTcpProxy(inject('etcd'));
  onTestFinished(() => line.stop());
  return line;
}

type Start = (etcd: string, args: readonly string[]) => { readonly code: Promise<number | null> };

const withoutTerminal: Start = (etcd, args) => ({ code: startRunOn(etcd, ...args).result.then(({ code }) => code) });

const onTerminal: Start = (etcd, args) => ({
  code: startOnTerminal([process.execPath, 'dist/cli/main.js', 'run', ...args], { ETCD_ENDPOINTS: etcd }).ended,
});

const breaks: [string, (line: TcpProxy) => void][] = [
  ['silent', (line) => line.blackHole('both')],
  ['sending no answers', (line) => line.blackHole('answers')],
  [
    'refusing connections',
    (line) => {
      line.refuse();
      line.cut();
    },
  ],
];

/** Starts a job that only SIGKILL ends, and breaks its connection to etcd. Checks that it ends before another client holds the lock. */
async function expectNoOverlap(etcdIs: string, start: Start, breakLine: (line: TcpProxy) => void): Promise<void> {
  const name = freshName();
  const [line, resource] = [await useLine(), await fencedResource()];
  const { hostname, port } = new URL(resource.url);
  const job = witness(1, '--stubborn', '--clock');
  const both = ['"$@" & exec', PYTHON, WRITER, hostname, port].join(' ');
  const { code } = start(line.url, [name, '--ttl', String(TTL), '--', 'sh', '-c', both, 'sh', ...job.command]);
  const pids = await job.begun();
  await until(
    () => resource.written,
    ({ length }) => length > 0,
  );
  const acquired = new LockManager(useClient()).request(name, async (held) => {
    const at = process.hrtime.bigint();
    await resource.write(held.fencingToken);
    // A job that still runs would write again in this time.
    await until(
      () => pids.some(isThere),
      (there) => !there,
    );
    return { at, token: held.fencingToken };
  });
  await untilQueued(name, 2);
  breakLine(line);
  const { at, token } = await acquired;
  const seen = {
    etcdIs,
    code: await code,
    refused: resource.refused,
    last: resource.written.at(-1),
    late: job.lastDoings().filter((last) => last >= at),
    signals: job.signals(),
    alive: pids.filter(isThere),
  };
  const signals = [['SIGTERM'], ['SIGTERM']];
  expect(seen).toEqual({ etcdIs, code: 75, refused: [], last: token, late: [], signals, alive: [] });
}

describe.each([
  ['without a terminal', withoutTerminal],
  ['on a terminal', onTerminal],
])('%s', (_, start) => {
  test('the job ends before anyone else can hold the lock, whether etcd is silent, sends no answers or refuses connections', () =>
    Promise.all(breaks.map(([etcdIs, breakLine]) => expectNoOverlap(etcdIs, start, breakLine))));
});

describe('a job whose lock cannot be renewed', () => {
  test('has time to end in order, and run exits with 75', async () => {
    const name = freshName();
    const line = await useLine();
    const job = witness(1);
    const { result } = startRunOn(line.url, name, '--ttl', String(TTL), '--', ...job.command);
    await job.begun();
    line.blackHole('both');
    const { code, stderr } = await result;
    expect(code).toBe(75);
    expect(stderr).toContain(`${name} could not be renewed in time; `);
    expect(job.signals()).toEqual([['SIGTERM'], ['SIGTERM']]);
  });

  test('does not end run with its own exit code, but with 75', async () => {
    const line = await useLine();
    const begun = witness(0);
    const script = 'trap "exit 3" TERM; "$@" & wait; wait';
    const { result } = startRunOn(
      line.url,
      freshName(),
      '--ttl',
      String(SHORT_TTL),
      '--',
      'sh',
      '-c',
      script,
      'sh',
      ...begun.command,
    );
    await begun.begun();
    line.blackHole('both');
    expect(await result).toMatchObject({ code: 75 });
  });

  test('ends run with its own exit code if it ends before the lock is lost', async () => {
    const name = freshName();
    const line = await useLine();
    const job = witness(0);
    const { result } = startRunOn(line.url, name, '--ttl', '30', '--', ...job.command);
    const [pid = 0] = await job.begun();
    const [entry] = await queueOn(name);
    line.blackHole('both');
    process.kill(pid, 'SIGTERM');
    const { code, stderr } = await result;
    expect(code).toBe(0);
    expect(stderr).toContain(`${entry?.key}`);
  });

  test('is killed at the next renewal if someone removed its entry', async () => {
    const name = freshName();
    const job = witness(1, '--stubborn');
    const { result } = startRunOn(inject('etcd'), name, '--ttl', String(SHORT_TTL), '--', ...job.command);
    const pids = await job.begun();
    const [entry] = await queueOn(name);
    await raw('DELETE', entry?.key ?? '');
    const { code, stderr } = await result;
    expect(code).toBe(75);
    expect(stderr).toContain(`${name} is no longer held`);
    expect(pids.map(isThere)).toEqual([false, false]);
  });

  test.each([
    [
      'a `run` inside it',
      (job: readonly string[]) => [process.execPath, 'dist/cli/main.js', 'run', freshName(), '--', ...job],
    ],
    ['a shell', (job: readonly string[]) => ['sh', '-c', 'env -i setsid "$@" & wait', 'sh', ...job]],
  ])('is killed together with what %s started in another session and environment', async (_, inside) => {
    const name = freshName();
    const job = witness(1, '--stubborn');
    const { result } = startRunOn(inject('etcd'), name, '--ttl', String(SHORT_TTL), '--', ...inside(job.command));
    const pids = await job.begun();
    const [entry] = await queueOn(name);
    await raw('DELETE', entry?.key ?? '');
    expect(await result).toMatchObject({ code: 75 });
    for (const pid of pids) await untilGone(pid);
  });

  test('is continued if it was stopped, so that it can end', async () => {
    const line = await useLine();
    const job = witness(1);
    const { result } = startRunOn(line.url, freshName(), '--ttl', String(TTL), '--', ...job.command);
    const pids = await job.begun();
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    await until(
      () => pids.map((pid) => statOf(pid)?.state),
      (states) => states.every((state) => state === 'T'),
    );
    line.blackHole('both');
    expect(await result).toMatchObject({ code: 75 });
    expect(job.signals()).toEqual([['SIGTERM'], ['SIGTERM']]);
  });

  test('keeps running if the outage is shorter than the lease', async () => {
    const name = freshName();
    const line = await useLine();
    const job = witness(0);
    const { process: run, result } = startRunOn(line.url, name, '--ttl', '15', '--', ...job.command);
    await job.begun();
    const [entry] = await queueOn(name);
    const failed = line.requests.length + 1;
    line.blackHole('both');
    await until(
      () => line.requests.length,
      (requests) => requests > failed,
    );
    line.heal();
    const expiry = Date.parse(entry?.expiration ?? '');
    await until(
      () => queueOn(name),
      ([now]) => Date.parse(now?.expiration ?? '') > expiry + 1000,
    );
    run.kill('SIGTERM');
    expect(await result).toMatchObject({ code: 0 });
  });
});
