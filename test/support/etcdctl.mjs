// Holds locks by `etcdctl lock`, which is Go's own Mutex. Plain JavaScript, because contenders in other processes load this module.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

// `etcdctl lock` gives its command no input: a line in a pipe with a name ends the command. So does the end of this process.
const HOLD = 'echo "$ETCD_LOCK_KEY $ETCD_LOCK_REV"; read -r _ < "$0"';

export function lockByEtcdctl(path, { endpoints, ttl }) {
  const directory = mkdtempSync(join(tmpdir(), 'etcdctl-'));
  const pipe = join(directory, 'over');
  execFileSync('mkfifo', [pipe]);
  const end = openSync(pipe, constants.O_RDWR);
  const args = ['lock', path, '--ttl', String(ttl), '--', 'sh', '-c', HOLD, pipe];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'etcdctl', ...args], {
    env: { ...process.env, ETCDCTL_API: '3', ETCDCTL_ENDPOINTS: endpoints.join(',') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    log += text;
  });
  const ended = once(child, 'close').then(([code]) => {
    closeSync(end);
    rmSync(directory, { recursive: true });
    if (code !== 0) throw new Error(`etcdctl lock ended with ${code}: ${log.trim()}`);
  });
  ended.catch(() => {});
  const held = Promise.race([
    once(createInterface({ input: child.stdout }), 'line').then(([line]) => {
      const [key, token] = line.split(' ');
      return { key, token: BigInt(token) };
    }),
    ended.then(() => {
      throw new Error('etcdctl lock ended without the lock');
    }),
  ]);
  held.catch(() => {});
  return {
    held,
    release() {
      if (child.exitCode === null && child.signalCode === null) writeSync(end, '\n');
      return ended;
    },
    kill() {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    },
  };
}
