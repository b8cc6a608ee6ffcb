import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { onPath } from '../../scripts/find.mjs';
import { clocked } from '../setting/clock.mjs';

function findEtcdctl() {
  const [program] = onPath('etcdctl');
  if (program === undefined) throw new Error('etcdctl not found: apt-get install etcd-client');
  return program;
}

const ENV = { PATH: process.env.PATH, ETCDCTL_API: '3' };
const lockArgs = (url, name) => [`--endpoints=${url}`, 'lock', '--ttl=600', name];

/** `etcdctl lock NAME true`: each cycle starts a process that gets the lock, runs the command and ends its session. */
export function etcdctlCycles(url) {
  const program = findEtcdctl();
  const cycle = async (name) => {
    const child = spawn(program, [...lockArgs(url, name), 'true'], { stdio: 'inherit', env: ENV });
    const [code] = await once(child, 'exit');
    if (code !== 0) throw new Error(`etcdctl lock exited with ${code}`);
  };
  return {
    id: 'etcdctl',
    title: '`etcdctl lock NAME true`',
    startsAnew: true,
    async cycles(name, times) {
      const took = [];
      for (let i = 0; i < times; i += 1) took.push(await clocked(() => cycle(name)));
      return took;
    },
    stop: async () => {},
  };
}

/**
 * `etcdctl lock`, on the v3 API of the same server. Each contender is a process that waits before the clock starts, prints its
 * key when it holds the lock, and releases the lock on SIGTERM.
 */
export function etcdctl(url) {
  const program = findEtcdctl();
  const name = `hand-over-${randomUUID()}`;
  let held;
  let waiting;
  const contend = () => {
    const child = spawn(program, lockArgs(url, name), { stdio: ['ignore', 'pipe', 'inherit'], env: ENV });
    // A leftover contender would wait for a stopped server.
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    child.once('exit', () => process.off('exit', kill));
    return { child, acquired: once(child.stdout, 'data') };
  };
  const end = async ({ child }) => {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  };
  return {
    id: 'etcdctl',
    title: '`etcdctl lock`',
    waitsBy: 'v3',
    startsAnew: true,
    async hold() {
      held = contend();
      await held.acquired;
    },
    async queue() {
      waiting = contend();
    },
    async passOn() {
      let ended;
      const took = await clocked(async () => {
        ended = end(held);
        await waiting.acquired;
      });
      await ended;
      held = waiting;
      return took;
    },
    giveBack: () => end(held),
    stop: async () => {},
  };
}
