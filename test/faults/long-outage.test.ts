import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { EtcdClusterIdChanged, LockManager, type RequestTrace } from '../../src/index.ts';
import { startRunOn } from '../cli/running.ts';
import { renewCluster, startEtcd } from '../support/etcd.ts';
import { freshName, queueOn, raw, rejection, untilQueued, useClient } from '../support/locks.ts';
import { until } from '../support/until.ts';

/** Seconds. */
const TTL = 2;
/** Seconds: with a shorter TTL, `run` stops its command on a machine that stands still for a second. */
const RUN_TTL = 8;
/** Milliseconds. */
const OUTAGE = RUN_TTL * 1000 + 500;

/** Starts an etcd, and a queue that begins with an entry that does not expire. */
async function setUp() {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const name = freshName();
  const { body } = await raw('POST', `/_locks/${name}`, { value: 'holder' }, etcd.url);
  const free = () => raw('DELETE', body.node.key, undefined, etcd.url);
  return { etcd, name, free };
}

/** Returns the growing list of the keys that requests for this lock lose while they wait. */
function requeuesOf(name: string): readonly string[] {
  const keys: string[] = [];
  const note = (message: unknown) => {
    const trace = message as RequestTrace;
    if (trace.name === name) keys.push(trace.key ?? '');
  };
  subscribe('tracing:etcd-v2-lock:request:requeued', note);
  onTestFinished(() => void unsubscribe('tracing:etcd-v2-lock:request:requeued', note));
  return keys;
}

/** The number in the name of an entry: its fencing token. */
const sequenceOf = (key: string): number => Number(key.trim().split('/').at(-1));

/** Waits until another entry than the lost one is the only one behind the first, and returns both. */
const untilOtherEntry = (name: string, lost: string, url: string) =>
  until(
    () => queueOn(name, url),
    ([, second, ...more]) => second !== undefined && second.key !== lost && more.length === 0,
  );

test('a request without a timeout survives an etcd that is down for longer than the TTL, with a greater token', async () => {
  const { etcd, name, free } = await setUp();
  const client = useClient({ endpoints: etcd.url });
  const requeued = requeuesOf(name);
  const waiting = new LockManager(client, { ttl: TTL }).request(name, (held) => held.key);
  const [, lost] = await untilQueued(name, 2, etcd.url);
  await etcd.kill();
  await until(
    () => requeued,
    ({ length }) => length > 0,
  );
  await etcd.restart();
  await untilOtherEntry(name, lost?.key ?? '', etcd.url);
  await free();
  // On a busy machine that entry may be lost as well, and replaced by a third.
  expect(sequenceOf(await waiting)).toBeGreaterThan(sequenceOf(lost?.key ?? ''));
  expect(requeued).toContain(lost?.key);
  expect(await queueOn(name, etcd.url)).toEqual([]);
});

test('a request fails with EtcdClusterIdChanged if another cluster answers after such an outage, and leaves no key', async () => {
  const { etcd, name } = await setUp();
  const client = useClient({ endpoints: etcd.url });
  const requeued = requeuesOf(name);
  const ended = rejection(new LockManager(client, { ttl: TTL }).request(name, () => {}));
  await untilQueued(name, 2, etcd.url);
  await etcd.kill();
  await until(
    () => requeued,
    ({ length }) => length > 0,
  );
  await renewCluster([etcd]);
  expect(await ended).toBeInstanceOf(EtcdClusterIdChanged);
  expect(await queueOn(name, etcd.url)).toEqual([]);
});

test('`run` without a timeout survives the same, then runs its command and exits with its exit code', async () => {
  const { etcd, name, free } = await setUp();
  const command = ['sh', '-c', 'echo $ETCD_LOCK_KEY; exit 3'];
  const { result } = startRunOn(etcd.url, name, '--ttl', String(RUN_TTL), '--', ...command);
  const [, lost] = await untilQueued(name, 2, etcd.url);
  await etcd.pause();
  // `run` counts its lease from its last renewal, which was before the pause.
  await sleep(OUTAGE);
  etcd.resume();
  await untilOtherEntry(name, lost?.key ?? '', etcd.url);
  await free();
  const { code, stdout } = await result;
  expect(code).toBe(3);
  expect(sequenceOf(stdout)).toBeGreaterThan(sequenceOf(lost?.key ?? ''));
  expect(await queueOn(name, etcd.url)).toEqual([]);
});

test('`run` whose timeout passes during the outage exits with 124, and never starts its command', async () => {
  const { etcd, name } = await setUp();
  const { result } = startRunOn(etcd.url, name, '--ttl', String(TTL), '--timeout', '5', '--', 'echo', 'started');
  await untilQueued(name, 2, etcd.url);
  await etcd.kill();
  const { code, stdout, stderr } = await result;
  expect({ code, stdout }).toEqual({ code: 124, stdout: '' });
  expect(stderr).toContain(`${name} not acquired within 5 s`);
});
