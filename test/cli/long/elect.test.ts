import { once } from 'node:events';
import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../../src/manager/manager.ts';
import { startTcpProxy } from '../../faults/tcp-proxy.ts';
import { useEtcdClient } from '../../support/both.ts';
import { runCli, startCli } from '../../support/cli.ts';
import { next, untilFinished } from '../../support/iterators.ts';
import { freshName, queueOn, raw, untilQueued } from '../../support/locks.ts';
import { useManager } from '../../support/managers.ts';
import { untilGone } from '../../support/processes.ts';
import { askJson } from '../../support/queues.ts';
import type { RunningScript } from '../../support/script.ts';
import { until } from '../../support/until.ts';
import { onEtcd } from '../running.ts';
import { witness } from '../witness.ts';

const elect = (...args: readonly string[]) => runCli(['elect', ...args], onEtcd());

/** Starts `etcd-v2-lock elect`; the end of the test kills it. */
function startElect(...args: readonly string[]): RunningScript {
  const running = startCli(['elect', ...args], onEtcd());
  onTestFinished(async () => {
    if (running.process.kill('SIGKILL')) await once(running.process, 'exit');
  });
  return running;
}

test('elect runs the command as the leader, with its value in the queue and its term in the environment', async () => {
  const name = freshName();
  const job = witness(0);
  const { process: child, result } = startElect(name, '--value', 'http://a@1', '--label', 'web', '--', ...job.command);
  await job.begun();
  expect(await useManager().elect(name).leader()).toMatchObject({ value: 'http://a@1', label: 'web', own: false });
  expect(await askJson(['inspect', name])).toMatchObject({ entries: [{ value: 'http://a@1', label: 'web' }] });
  child.kill('SIGTERM');
  expect(await result).toMatchObject({ code: 0, stderr: '' });
  expect(await queueOn(name)).toEqual([]);
  const { code, stdout } = await elect(name, '--', 'sh', '-c', 'echo $ETCD_LOCK_NAME $ETCD_LOCK_TOKEN; exit 7');
  expect({ code, stdout }).toEqual({ code: 7, stdout: expect.stringMatching(`^${name} [1-9]\\d*\n$`) });
  expect(await queueOn(name)).toEqual([]);
});

test('elect waits for the leader before it, and leads once', async () => {
  const name = freshName();
  const leaders = useManager().elect(name).observe({ signal: untilFinished() });
  expect(await next(leaders)).toBeUndefined();
  const first = useManager().elect(name, { value: 'first' }).campaign();
  const one = await next(first);
  expect(await next(leaders)).toMatchObject({ value: 'first' });
  const job = witness(0);
  const { process: child, result } = startElect(name, '--value', 'second', '--', ...job.command);
  await untilQueued(name, 2);
  await one.resign();
  expect(await next(leaders)).toMatchObject({ value: 'second' });
  await job.begun();
  child.kill('SIGTERM');
  expect(await result).toMatchObject({ code: 0 });
  expect(await next(leaders)).toBeUndefined();
  await first.return();
});

test('elect ends with 75, and kills the command, when its entry is removed', async () => {
  const name = freshName();
  const job = witness(1, '--stubborn');
  const { result } = startElect(name, '--ttl', '15', '--', ...job.command);
  const pids = await job.begun();
  const [entry] = await queueOn(name);
  await raw('DELETE', entry?.key ?? '');
  const { code, stderr } = await result;
  expect({ code, stderr }).toEqual({ code: 75, stderr: expect.stringMatching('is lost: .* was stopped\n$') });
  for (const pid of pids) await untilGone(pid);
  expect(await queueOn(name)).toEqual([]);
});

test('elect ends by SIGTERM while it waits, and leaves no entry', async () => {
  const name = freshName();
  await raw('POST', `/_locks/${name}`, { value: 'leader', ttl: '600' });
  const { process: child, result } = startElect(name, '--', 'true');
  await untilQueued(name, 2);
  child.kill('SIGTERM');
  expect(await result).toMatchObject({ code: 143, stdout: '' });
  expect(await queueOn(name)).toMatchObject([{ value: 'leader' }]);
});

test.each(['v3', 'both'] as const)('elect with --api %s publishes the value there', async (api) => {
  const name = freshName();
  const job = witness(0);
  const { process: child, result } = startElect('--api', api, name, '--value', 'x', '--', ...job.command);
  await job.begun();
  expect(await new LockManager(useEtcdClient({ api })).elect(name).leader()).toMatchObject({ value: 'x' });
  child.kill('SIGTERM');
  expect(await result).toMatchObject({ code: 0, stderr: '' });
});

test.each([
  [['x', '--value', 'v'.repeat(1001), '--', 'true'], 64, 'value must have at most 1000 bytes'],
  [['x'.repeat(301), '--value', 'v', '--', 'true'], 64, 'the name of an election with a value must have at most 300'],
  [['x', '--ttl', '0', '--', 'true'], 64, 'ttl must be an integer number of seconds from 1'],
  [['a//b', '--', 'true'], 64, 'a//b'],
  [['x', '--timeout', '5', '--', 'true'], 64, "unknown option '--timeout'"],
  [['x', '--', 'nosuch-command'], 127, 'command not found: "nosuch-command"'],
])('elect with %j is refused before any request', async (args, code, message) => {
  const ended = await runCli(['elect', ...args], { ETCD_ENDPOINTS: 'http://127.0.0.1:1' });
  expect(ended).toMatchObject({ code, stdout: '' });
  expect(ended.stderr).toContain(message);
});

test('elect waits for etcd that is not up yet', async () => {
  const line = await startTcpProxy(inject('etcd'));
  onTestFinished(() => line.stop());
  line.refuse();
  const { result } = startCli(['elect', freshName(), '--', 'true'], { ETCD_ENDPOINTS: line.url });
  await until(
    () => line.accepted,
    (count) => count > 12,
  );
  line.heal();
  expect(await result).toMatchObject({ code: 0 });
});
