import { fileURLToPath } from 'node:url';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { findPython } from '../../scripts/find.mjs';
import { LockManager } from '../../src/index.ts';
import { startTcpProxy, type TcpProxy } from '../faults/tcp-proxy.ts';
import { fencedResource } from '../support/fenced-resource.ts';
import { freshName, queueOn, raw, untilQueued, useClient } from '../support/locks.ts';
import { isThere, statOf, untilGone } from '../support/processes.ts';
import { startOnTerminal } from '../support/terminal.ts';
import { until } from '../support/until.ts';
import { startRunOn } from './running.ts';
import { witness } from './witness.ts';

/** Long enough for a job on a busy machine to hear of its end within TTL/8. */
const TTL = 6;
const WRITER = fileURLToPath(new URL('writer.py', import.meta.url));
const PYTHON = findPython() ?? '';

/** A line to etcd that can be broken. */
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
  ['is silent', (line) => line.blackHole('both')],
  ['answers no more', (line) => line.blackHole('answers')],
  [
    'refuses',
    (line) => {
      line.refuse();
      line.cut();
    },
  ],
];

describe.each([
  ['without a terminal', withoutTerminal],
  ['on a terminal', onTerminal],
])('%s', (_, start) => {
  test.each(breaks)('where etcd %s, no job goes on once another may hold the lock', async (_, breakLine) => {
    const name = freshName();
    const [line, resource] = [await useLine(), await fencedResource()];
    const { hostname, port } = new URL(resource.url);
    const job = witness(1, '--stubborn', '--spin');
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
      // Whatever still runs has the time to show it.
      await until(
        () => pids.some(isThere),
        (there) => !there,
      );
      return { at, token: held.fencingToken };
    });
    await untilQueued(name, 2);
    breakLine(line);
    const { at, token } = await acquired;
    expect(await code).toBe(75);
    expect(resource.refused).toEqual([]);
    expect(resource.written.at(-1)).toBe(token);
    for (const last of job.lastDoings()) expect(last).toBeLessThan(at);
    expect(job.signals()).toEqual([['SIGTERM'], ['SIGTERM']]);
    expect(pids.map(isThere)).toEqual([false, false]);
  });
});

describe('a lock that is lost', () => {
  test('leaves the job the time to end in order, and the exit code says so', async () => {
    const name = freshName();
    const line = await useLine();
    const job = witness(1);
    const { result } = startRunOn(line.url, name, '--ttl', String(TTL), '--', ...job.command);
    await job.begun();
    line.blackHole('both');
    const { code, stderr } = await result;
    expect(code).toBe(75);
    expect(stderr).toContain(`${name} could not be renewed`);
    expect(job.signals()).toEqual([['SIGTERM'], ['SIGTERM']]);
  });

  test('counts for more than the exit code of a job that ends meanwhile', async () => {
    const line = await useLine();
    const begun = witness(0);
    const script = 'trap "exit 3" TERM; "$@" & wait; wait';
    const { result } = startRunOn(
      line.url,
      freshName(),
      '--ttl',
      String(TTL),
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

  test('does not matter to a job that has ended by itself before', async () => {
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

  test('stops the job with the next renewal where someone removed its entry', async () => {
    const name = freshName();
    const job = witness(1, '--stubborn');
    const { result } = startRunOn(inject('etcd'), name, '--ttl', String(TTL), '--', ...job.command);
    const pids = await job.begun();
    const [entry] = await queueOn(name);
    await raw('DELETE', entry?.key ?? '');
    const { code, stderr } = await result;
    expect(code).toBe(75);
    expect(stderr).toContain(`${name} is held no more`);
    expect(pids.map(isThere)).toEqual([false, false]);
  });

  test.each([
    [
      'a `run` inside it',
      (job: readonly string[]) => [process.execPath, 'dist/cli/main.js', 'run', freshName(), '--', ...job],
    ],
    ['a shell', (job: readonly string[]) => ['sh', '-c', 'env -i setsid "$@" & wait', 'sh', ...job]],
  ])('ends also what %s started in another session, with another environment', async (_, inside) => {
    const name = freshName();
    const job = witness(1, '--stubborn');
    const { result } = startRunOn(inject('etcd'), name, '--ttl', String(TTL), '--', ...inside(job.command));
    const pids = await job.begun();
    const [entry] = await queueOn(name);
    await raw('DELETE', entry?.key ?? '');
    expect(await result).toMatchObject({ code: 75 });
    for (const pid of pids) await untilGone(pid);
  });

  test('wakes a stopped job to end it', async () => {
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

  test('is none while an outage is shorter than the lease', async () => {
    const name = freshName();
    const line = await useLine();
    const job = witness(0);
    const { process: run, result } = startRunOn(line.url, name, '--ttl', '6', '--', ...job.command);
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
